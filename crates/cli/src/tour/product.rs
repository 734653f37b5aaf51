//! Step 8: the GEMM itself, in which every address is the value of a layout.

use super::fragments::{LANES, THREADS};
use super::{Stop, Tour, everywhere};
use tilewright::explain::map::Map;

/// The tile that this step computes.
const BLOCK: (i64, i64) = (1, 2);

/// A layout's offsets, evaluated once at every index.
struct Offsets(Vec<usize>);

impl Offsets {
    fn of(map: &Map) -> Result<Offsets, Stop> {
        (0..map.size()).map(|index| Ok(usize::try_from(map.at(index)?)?)).collect::<Result<_, Stop>>().map(Offsets)
    }

    fn at(&self, index: usize) -> Result<usize, Stop> {
        self.0.get(index).copied().ok_or_else(|| Stop(format!("there is no index {index}")))
    }
}

fn read(memory: &[i64], at: usize) -> Result<i64, Stop> {
    memory.get(at).copied().ok_or_else(|| Stop(format!("address {at} is outside")))
}

fn write(memory: &mut [i64], at: usize) -> Result<&mut i64, Stop> {
    memory.get_mut(at).ok_or_else(|| Stop(format!("address {at} is outside")))
}

/// A matrix of small integers that does not repeat within a tile.
fn filled(count: usize, factor: usize) -> Vec<i64> {
    (0..count).map(|at| i64::try_from(at * factor % 8191 % 13).unwrap_or(0) - 6).collect()
}

pub fn run(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "Now compute tile (1,2) of C with these layouts alone: copy blocks of A and B to the swizzled shared memory, let each \
         of the 128 threads load its registers, run the instruction on the registers of each warp, store. The same tile is \
         computed by three plain loops, and compared.",
    );
    tour.layout("blocksB", "zipped_divide(B, [128:1;64:1])")?;
    tour.layout("loadB", "sA o ownB")?;
    tour.blank();
    let layouts = Layouts {
        blocks_a: Offsets::of(&tour.map("blocks")?)?,
        blocks_b: Offsets::of(&tour.map("blocksB")?)?,
        shared: Offsets::of(&tour.map("sA")?)?,
        load_a: Offsets::of(&tour.map("loadA")?)?,
        load_b: Offsets::of(&tour.map("loadB")?)?,
        piece_a: Offsets::of(&tour.map("fA")?)?,
        piece_b: Offsets::of(&tour.map("fB")?)?,
        piece_c: Offsets::of(&tour.map("fC")?)?,
    };
    let (a, b) = (filled(512 * 256, 37), filled(512 * 256, 101));
    let registers = layouts.tile(&a, &b)?;

    let block = tour.map("C")?;
    let store = tour.map("storeC")?;
    let start = block.at(128 * BLOCK.0 + 512 * 128 * BLOCK.1)?;
    let mut c = vec![0; 512 * 512];
    for (index, value) in registers.iter().enumerate() {
        *write(&mut c, usize::try_from(start + store.at(i64::try_from(index)?)?)?)? = *value;
    }
    let outcome = everywhere(128 * 128, |cell| {
        let (m, n) = (usize::try_from(128 * BLOCK.0 + cell % 128)?, usize::try_from(128 * BLOCK.1 + cell / 128)?);
        let row = a.iter().skip(256 * m).take(256);
        let expected: i64 = row.zip(b.iter().skip(256 * n)).map(|(x, y)| x * y).sum();
        Ok(read(&c, 512 * m + n)? == expected)
    });
    tour.line("  128 x 128 x 256 = 4,194,304 multiply-adds, through the layouts and by plain loops.");
    tour.check("the two results are equal", 128 * 128, outcome);
    Ok(())
}

/// The layouts that the kernel consists of.
struct Layouts {
    blocks_a: Offsets,
    blocks_b: Offsets,
    shared: Offsets,
    load_a: Offsets,
    load_b: Offsets,
    piece_a: Offsets,
    piece_b: Offsets,
    piece_c: Offsets,
}

impl Layouts {
    /// The registers of all threads, thread fastest, after the loop over all of K.
    fn tile(&self, a: &[i64], b: &[i64]) -> Result<Vec<i64>, Stop> {
        let threads = usize::try_from(THREADS)?;
        let mut accumulators = vec![0; threads * 128];
        for step in 0..4 {
            let shared_a = self.copied(a, &self.blocks_a, usize::try_from(BLOCK.0)?, step)?;
            let shared_b = self.copied(b, &self.blocks_b, usize::try_from(BLOCK.1)?, step)?;
            let load = |memory: &[i64], layout: &Offsets| -> Result<Vec<i64>, Stop> {
                layout.0.iter().map(|at| read(memory, *at)).collect()
            };
            let (registers_a, registers_b) = (load(&shared_a, &self.load_a)?, load(&shared_b, &self.load_b)?);
            for warp in 0..4 {
                for piece in 0..4 * 8 * 4 {
                    let (i, j, k) = (piece % 4, piece / 4 % 8, piece / 32);
                    self.instruction(
                        Fragment { registers: &registers_a, warp, first: 8 * (i + 4 * k) },
                        Fragment { registers: &registers_b, warp, first: 4 * (j + 8 * k) },
                        (&mut accumulators, 4 * (i + 4 * j)),
                    )?;
                }
            }
        }
        Ok(accumulators)
    }

    /// The shared memory block, filled from block (`row`, `step`) of a matrix.
    fn copied(&self, matrix: &[i64], blocks: &Offsets, row: usize, step: usize) -> Result<Vec<i64>, Stop> {
        let tile = 128 * 64;
        let mut shared = vec![0; tile];
        for index in 0..tile {
            *write(&mut shared, self.shared.at(index)?)? = read(matrix, blocks.at(index + tile * (row + 4 * step))?)?;
        }
        Ok(shared)
    }

    /// The operation of the hardware: gathers the pieces from the lanes of a warp, multiplies, and
    /// adds to the lanes' registers.
    fn instruction(&self, a: Fragment<'_>, b: Fragment<'_>, c: (&mut [i64], usize)) -> Result<(), Stop> {
        let (piece_a, piece_b) = (a.gathered(&self.piece_a, 16 * 16)?, b.gathered(&self.piece_b, 8 * 16)?);
        let lanes = usize::try_from(LANES)?;
        let (accumulators, first) = c;
        for (index, place) in self.piece_c.0.iter().enumerate() {
            let (m, n) = (place % 16, place / 16);
            let mut sum = 0;
            for k in 0..16 {
                sum += read(&piece_a, m + 16 * k)? * read(&piece_b, n + 8 * k)?;
            }
            *write(accumulators, register(index % lanes, a.warp, first + index / lanes))? += sum;
        }
        Ok(())
    }
}

/// The index of a register among those of all threads.
fn register(lane: usize, warp: usize, value: usize) -> usize {
    lane + 32 * warp + 128 * value
}

/// The registers of one warp that hold an operand of the instruction, from value `first` on.
struct Fragment<'a> {
    registers: &'a [i64],
    warp: usize,
    first: usize,
}

impl Fragment<'_> {
    /// The operand as a matrix, first mode fastest.
    fn gathered(&self, piece: &Offsets, cells: usize) -> Result<Vec<i64>, Stop> {
        let lanes = usize::try_from(LANES)?;
        let mut matrix = vec![0; cells];
        for (index, place) in piece.0.iter().enumerate() {
            let at = register(index % lanes, self.warp, self.first + index / lanes);
            *write(&mut matrix, *place)? = read(self.registers, at)?;
        }
        Ok(matrix)
    }
}
