//! `cargo xtask lab figures`: the check of figures by itself, also of other builds than that of the
//! present sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use xtask_support::{Result, cargo};

use super::{Figures, PROGRAM, Part, file, script};
use crate::arch::Arch;
use crate::driver::board::cross_cargo;
use crate::driver::guest::{Guest, Stream};
use crate::driver::machine::{Machine, Mode};
use crate::driver::stage::Job;
use crate::kernels::Kernel;
use crate::kernels::debs::rt_tests;
use crate::kernels::package::Flavour;
use crate::tools;
use crate::trouble::Interrupt;
use crate::workdir::at;

/// In MB.
const MEMORY: u32 = 512;

/// The time limit of a measurement, even for a 64-bit ARM guest on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(3600);

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Write the figures to the file instead of comparing them
    #[arg(long)]
    bless: bool,

    /// Print the figures as well
    #[arg(long)]
    show: bool,

    /// Kernel to measure on: `rt`, or `rt-arm64` with its figures in lab/figures-arm64.txt
    #[arg(long, value_name = "NAME", default_value = "rt", value_parser = kernel)]
    kernel: Flavour,

    /// A build of `punctual-figures`, instead of one of the present sources
    #[arg(long, value_name = "FILE", value_parser = crate::options::file)]
    program: Option<PathBuf>,
}

fn kernel(name: &str) -> Result<Flavour, String> {
    match Flavour::named(name)? {
        flavour @ (Flavour::Rt | Flavour::RtArm64) => Ok(flavour),
        _ => Err("there are figures of `rt` and of `rt-arm64`".to_owned()),
    }
}

/// Measures, and compares or writes.
pub(crate) fn run(options: &Options) -> Result<i32> {
    let measurement = Measurement::new(options.kernel)?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build(measurement.kernel.arch)?,
    };
    let found = measurement.of(&program, &Part::ALL)?;
    let file = file(measurement.kernel.arch);
    if options.show {
        print!("{found}");
    }
    if options.bless {
        fs::write(&file, found.to_string()).map_err(at(&file))?;
        println!("lab: {} figures written to {}", found.len(), file.display());
        return Ok(0);
    }
    Figures::read(&file)?.require(&found, true)?;
    println!("lab: {} figures are as expected", found.len());
    Ok(0)
}

/// Returns the measuring program, built from the present sources.
pub(crate) fn build(arch: Arch) -> Result<PathBuf> {
    let mut command = cross_cargo(arch.uname())?;
    cargo::program(command.args(["build", "--release", "-p", PROGRAM]), PROGRAM)
}

/// Compares builds of [`PROGRAM`] with `lab/figures.txt`.
#[allow(missing_debug_implementations, reason = "nobody prints one")]
pub struct FigureCheck {
    measurement: Measurement,
    expected: Figures,
}

impl FigureCheck {
    /// Prepares a measurement, and reads the file.
    ///
    /// # Errors
    ///
    /// A requirement of the lab is missing, or the file.
    pub fn new() -> Result<Self> {
        Ok(Self { measurement: Measurement::new(Flavour::Rt)?, expected: Figures::read(&file(Arch::Amd64))? })
    }

    /// Returns the deviations of `program`: each with its row and a message. With a `row`, only
    /// that row is measured, and those in the same part of the measurement.
    ///
    /// # Errors
    ///
    /// The measurement failed.
    pub fn deviations(&self, program: &Path, row: Option<&str>) -> Result<Vec<(String, String)>> {
        let parts = row.map_or(Part::ALL.as_slice(), |row| Part::of(row));
        let found = self.measurement.of(program, parts)?;
        let deviations = self.expected.deviations(&found, row.is_none());
        Ok(deviations.into_iter().map(|deviation| (deviation.row.clone(), deviation.to_string())).collect())
    }
}

/// A measuring guest.
struct Measurement {
    kernel: Kernel,
    interrupt: Interrupt,
}

impl Measurement {
    fn new(flavour: Flavour) -> Result<Self> {
        tools::require([flavour.arch().qemu(), "setpriv", "busybox", "ldd"])?;
        let interrupt = Interrupt::install()?;
        let kernel = Kernel::get(flavour, &interrupt)?;
        if let Some(userland) = kernel.arch.userland() {
            userland.get(&interrupt)?;
        }
        rt_tests(kernel.arch).get(&interrupt)?;
        Ok(Self { kernel, interrupt })
    }

    /// Returns the figures of a build of the program.
    fn of(&self, program: &Path, parts: &[Part]) -> Result<Figures> {
        let rt_tests = rt_tests(self.kernel.arch);
        let name = "measure".to_owned();
        let job = Job {
            command: vec!["sh".to_owned(), format!("/lab/bin/{name}")],
            programs: vec![program.to_owned(), rt_tests.program("hackbench")],
            scripts: vec![(name, script(program, rt_tests, parts))],
            ..Job::default()
        };
        let machine = Machine { cpus: 1, memory: MEMORY, counted: true, ..Machine::default() };
        let guest = Guest {
            machine,
            kernel: &self.kernel,
            mode: Mode::Late,
            timeout: TIMEOUT,
            interrupt: &self.interrupt,
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut sink = |stream: Stream, bytes: &[u8]| -> Result {
            match stream {
                Stream::Stdout => stdout.extend_from_slice(bytes),
                Stream::Stderr => stderr.extend_from_slice(bytes),
            }
            Ok(())
        };
        let ended = guest.run(&job, &mut sink, &|_| Ok(()))?;
        if ended.status != 0 {
            let printed = String::from_utf8_lossy(&stderr);
            return Err(format!("the measurement ended with status {}\n{printed}", ended.status).into());
        }
        Figures::measured(&String::from_utf8_lossy(&stdout))
    }
}
