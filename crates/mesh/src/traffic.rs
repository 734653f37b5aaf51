//! The numbers of elements that each device sends and receives.

/// The traffic of one device in a step, in elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RankTraffic {
    /// Elements that it sends to others; an element that is sent to several devices counts once for
    /// each.
    pub sent: i64,
    /// Elements received from others.
    pub received: i64,
    /// Elements that it copies from its own memory.
    pub kept: i64,
    /// The number of devices to which it sends.
    pub targets: i64,
    /// The number of devices from which it receives.
    pub sources: i64,
}

/// The traffic of all devices in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    ranks: Vec<RankTraffic>,
    /// The size of all messages between devices, if they have the same size.
    message: MessageAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageAction {
    None,
    All(i64),
    Uneven,
}

/// What all messages of a step have in common.
pub(crate) struct Shape {
    /// The number of elements of each message; None if it differs.
    pub message: Option<i64>,
    /// The number of senders for each receiver; None if it differs.
    pub sources: Option<i64>,
    /// The number of receivers for each sender; None if it differs.
    pub targets: Option<i64>,
    /// Whether every sender also receives.
    pub mutual: bool,
}

impl Traffic {
    pub(crate) fn new(ranks: usize) -> Traffic {
        Traffic { ranks: vec![RankTraffic::default(); ranks], message: MessageAction::None }
    }

    pub(crate) fn note(&mut self, from: usize, to: usize, count: i64) {
        if from == to {
            self.ranks.iter_mut().skip(to).take(1).for_each(|rank| rank.kept += count);
            return;
        }
        self.message = match self.message {
            MessageAction::None => MessageAction::All(count),
            MessageAction::All(before) if before == count => MessageAction::All(count),
            _ => MessageAction::Uneven,
        };
        for rank in self.ranks.iter_mut().skip(from).take(1) {
            rank.sent += count;
            rank.targets += 1;
        }
        for rank in self.ranks.iter_mut().skip(to).take(1) {
            rank.received += count;
            rank.sources += 1;
        }
    }

    /// The traffic of each device, by rank.
    pub fn ranks(&self) -> impl Iterator<Item = &RankTraffic> {
        self.ranks.iter()
    }

    /// The number of elements that are sent from one device to another, in all.
    pub fn moved(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.received).sum()
    }

    /// The greatest number of elements that a device receives.
    pub fn most_received(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.received).max().unwrap_or(0)
    }

    /// The greatest number of elements that a device sends.
    pub fn most_sent(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.sent).max().unwrap_or(0)
    }

    pub(crate) fn shape(&self) -> Shape {
        let one = |number: fn(&RankTraffic) -> i64| {
            let mut numbers = self.ranks.iter().map(number).filter(|number| *number > 0);
            let first = numbers.next()?;
            numbers.all(|number| number == first).then_some(first)
        };
        Shape {
            message: if let MessageAction::All(count) = self.message { Some(count) } else { None },
            sources: one(|rank| rank.sources),
            targets: one(|rank| rank.targets),
            mutual: self.ranks.iter().all(|rank| (rank.sources == 0) == (rank.targets == 0)),
        }
    }
}
