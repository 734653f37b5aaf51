//! How much each device sends and receives.

/// The traffic of one device in a step, in elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RankTraffic {
    /// Elements that go to others; one that goes to several counts for each.
    pub sent: i64,
    /// Elements received from others.
    pub received: i64,
    /// Elements that it takes from its own memory.
    pub kept: i64,
    /// How many devices it sends to.
    pub targets: i64,
    /// How many devices it receives from.
    pub sources: i64,
}

/// The traffic of all devices in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    ranks: Vec<RankTraffic>,
    /// The size of all messages between devices, if they are of one size.
    message: MessageAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageAction {
    None,
    All(i64),
    Uneven,
}

/// The common shape of messages.
pub(crate) struct Shape {
    /// Elements of each message, if all have equally many.
    pub message: Option<i64>,
    /// Senders for each receiver, if all have equally many.
    pub sources: Option<i64>,
    /// To how many each sender sends, if all do to as many.
    pub targets: Option<i64>,
    /// Whether who sends also receives.
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

    /// All elements that go from one device to another.
    pub fn moved(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.received).sum()
    }

    /// The most that a device receives.
    pub fn most_received(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.received).max().unwrap_or(0)
    }

    /// The most that a device sends.
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
