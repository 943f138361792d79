//! The examples on other executors: on the global one, and with their tasks in two partitions.
//!
//! An example prints the same lines on them, but in a different order: jobs on different CPUs do
//! not wait for each other. In virtual time the order is still the same in every run. Examples that
//! show how jobs share one CPU declare this; their variants only need to end.

mod package;
mod source;

use std::fmt;
use std::fs;
use std::path::PathBuf;

pub(crate) use self::package::{dependencies, remove_others, write_if_changed};
use crate::Result;
use crate::cargo::{self, Artifact};
use crate::golden::Golden;

/// The difference between an example and its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// `executor = "global"`.
    Global,
    /// Two partitions, to which the tasks are assigned alternately.
    Split,
}

impl Variant {
    pub(crate) const ALL: [Self; 2] = [Self::Global, Self::Split];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Split => "split",
        }
    }

    /// Returns the number of CPUs it needs on kernel threads.
    pub(crate) fn cpus(self) -> usize {
        match self {
            Self::Global => 1,
            Self::Split => 2,
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// All examples of one variant, in one executable; its argument selects the example.
pub(crate) struct Program {
    pub(crate) variant: Variant,
    /// Names and sources.
    examples: Vec<(String, String)>,
}

impl Program {
    /// Returns whether `example` is among its examples.
    pub(crate) fn has(&self, example: &Golden) -> bool {
        self.examples.iter().any(|(name, _)| *name == example.name)
    }

    /// Returns its executable among those that cargo has built.
    pub(crate) fn executable<'a>(&self, built: &'a [Artifact]) -> Result<&'a PathBuf> {
        let name = package::program(self.variant);
        let found =
            built.iter().find(|artifact| artifact.package == package::NAME && artifact.target == name);
        found.map(|artifact| &artifact.path).ok_or_else(|| format!("cargo built no program {name}").into())
    }
}

/// Returns whether `executable` is that of a [`Program`].
pub(crate) fn are_in(executable: &Artifact) -> bool {
    executable.package == package::NAME
}

/// Returns the variants of all `examples`.
pub(crate) fn of(examples: &[Golden]) -> Result<Vec<Program>> {
    let program = |variant| -> Result<Program> {
        let mut sources = Vec::new();
        for example in examples {
            let name = &example.name;
            let source = fs::read_to_string(&example.source)?;
            let source =
                source::rewrite(&source, variant).map_err(|error| format!("example {name}: {error}"))?;
            sources.extend(source.map(|source| (name.clone(), source)));
        }
        Ok(Program { variant, examples: sources })
    };
    Variant::ALL.into_iter().map(program).collect()
}

/// Builds `programs`.
pub(crate) fn build(programs: &[Program]) -> Result<Vec<Artifact>> {
    let directory = cargo::target_dir().join(package::NAME);
    package::write(&directory, programs)?;
    let mut command = cargo::command();
    command.args(["build", "--offline", "--manifest-path"]).arg(directory.join("Cargo.toml"));
    cargo::build(command.arg("--target-dir").arg(cargo::target_dir()))
}
