//! The rank of this process, from the variables of launchers.
//!
//! Law: the variables of torchrun (and of `tilewright launch`) are read first, then those of Open
//! MPI, of MPICH, and of Slurm. The address of the first process is in `MASTER_ADDR` and
//! `MASTER_PORT`. If MPI or Slurm started processes on one node without these, the address is the
//! node's own, and the port follows from the job number. The token of the job is in
//! `TILEWRIGHT_TOKEN`, which `tilewright launch` sets; other launchers pass it on.

use super::token::Token;
use crate::error::MeshError;

/// The rank of this process, the number of processes, and the address of the first process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The rank of this process.
    pub rank: usize,
    /// The number of processes.
    pub ranks: usize,
    /// The address at which the first process listens.
    pub address: String,
    /// The port at which the first process listens.
    pub port: u16,
    /// The token that all processes of the job share; None if there is only one process.
    pub token: Option<Token>,
}

/// For each launcher, the names of the variables of the rank, the number of processes, and the job
/// number.
const LAUNCHERS: [(&str, &str, Option<&str>); 4] = [
    ("RANK", "WORLD_SIZE", None),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", Some("PMIX_NAMESPACE")),
    ("PMI_RANK", "PMI_SIZE", None),
    ("SLURM_PROCID", "SLURM_NTASKS", Some("SLURM_JOB_ID")),
];

impl Place {
    /// The place that the environment of this process specifies.
    ///
    /// Errors: no launcher's variables are set, or they are not numbers
    /// ([`MeshError::Environment`]); an invalid job token ([`MeshError::Token`]).
    pub fn of_environment() -> Result<Place, MeshError> {
        Place::of_variables(|name| std::env::var(name).ok())
    }

    /// The place that these variables specify.
    ///
    /// Errors: those of [`Place::of_environment`].
    ///
    /// ```
    /// use tilewright_mesh::Place;
    ///
    /// let torchrun = [("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "node7"), ("MASTER_PORT", "29500")];
    /// let own = [("TILEWRIGHT_TOKEN", "fb0c44e1a9d27765")];
    /// let all = torchrun.iter().chain(&own);
    /// let variable = |name: &str| all.clone().find(|(own, _)| *own == name).map(|(_, value)| value.to_string());
    /// let place = Place::of_variables(variable).unwrap();
    /// assert_eq!((place.rank, place.ranks, place.address.as_str(), place.port), (1, 4, "node7", 29500));
    /// assert!(place.token.unwrap().is("fb0c44e1a9d27765"));
    /// ```
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Place, MeshError> {
        let fail = |what: String| MeshError::Environment { what: what.into() };
        let number = |name: &str, text: &str| {
            text.trim()
                .parse::<usize>()
                .map_err(|_| fail(format!("{name} is `{text}`, which is not a whole number that fits in a word")))
        };
        for (rank_name, ranks_name, job) in LAUNCHERS {
            let (Some(rank), Some(ranks)) = (variable(rank_name), variable(ranks_name)) else { continue };
            let (rank, ranks) = (number(rank_name, &rank)?, number(ranks_name, &ranks)?);
            if rank >= ranks {
                return Err(fail(format!("{rank_name} is {rank}, and {ranks_name} is {ranks}")));
            }
            let address = variable("MASTER_ADDR").unwrap_or_else(|| "127.0.0.1".to_owned());
            let port = match (variable("MASTER_PORT"), job.and_then(&variable)) {
                (Some(port), _) => u16::try_from(number("MASTER_PORT", &port)?)
                    .map_err(|_| fail(format!("MASTER_PORT is {port}, which is no port")))?,
                (None, Some(job)) => port_of(&job),
                (None, None) => return Err(fail(format!("{rank_name} is set, and MASTER_PORT is not"))),
            };
            let token = variable(Token::VARIABLE).map(|text| Token::new(&text)).transpose()?;
            return Ok(Place { rank, ranks, address, port, token });
        }
        let names = LAUNCHERS.map(|(rank, ..)| rank).join(", ");
        Err(fail(format!("none of {names} is set: this process was started by no launcher")))
    }
}

/// A port for a job: the same for all its processes, and different for most other jobs.
fn port_of(job: &str) -> u16 {
    let mixed = job.bytes().fold(0xcbf2_9ce4_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    20_000 + (mixed % 10_000) as u16
}
