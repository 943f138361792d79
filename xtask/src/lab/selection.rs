//! The words after `cargo xtask lab test`: which cases run, and where.

use super::cases::{Case, On};
use super::package::Flavour;
use crate::Result;

const USAGE: &str =
    "usage: cargo xtask lab test [--quick] [--kernel NAME] [--only TEXT] [--host USER@BOARD] [--bless]";

/// What the words ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Only what gives the most confidence in little time.
    pub(crate) quick: bool,
    /// Only the machines with this kernel.
    pub(crate) flavour: Option<Flavour>,
    /// Only cases with this in their names.
    pub(crate) only: Option<String>,
    /// A real machine to run them on, as ssh names it; otherwise they run in QEMU.
    pub(crate) host: Option<String>,
    /// Write down the figures that come out instead of comparing them.
    pub(crate) bless: bool,
}

impl Selection {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
            match word.as_str() {
                "--quick" => selection.quick = true,
                "--bless" => selection.bless = true,
                "--kernel" => selection.flavour = Some(Flavour::named(&value()?)?),
                "--only" => selection.only = Some(value()?),
                "--host" => selection.host = Some(value()?),
                _ => return Err(format!("unexpected argument `{word}`\n{USAGE}").into()),
            }
        }
        if selection.bless && (selection.host.is_some() || selection.quick) {
            return Err("--bless writes down counted figures, which --host and --quick do not have".into());
        }
        match selection.flavour {
            Some(flavour) if On::ALL.iter().all(|on| on.flavour() != flavour) => {
                Err(format!("the suite has no machine with the kernel `{}`", flavour.name()).into())
            }
            _ => Ok(selection),
        }
    }

    /// The machines to look for cases for. A quick run builds no kernel, and leaves out those that have to be built.
    pub(crate) fn machines(&self) -> impl Iterator<Item = On> {
        On::ALL.into_iter().filter(|on| match self.flavour {
            Some(flavour) => on.flavour() == flavour,
            None => !(self.quick && on.flavour().is_built()),
        })
    }

    /// Whether `case` is among them.
    pub(crate) fn has(&self, case: &Case) -> bool {
        self.only.as_ref().is_none_or(|text| case.name.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Selection> {
        Selection::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn reads_every_word() {
        assert_eq!(parse("").unwrap(), Selection::default());
        let board = parse("--host root@pi --only stress").unwrap();
        assert_eq!((board.host.as_deref(), board.only.as_deref()), (Some("root@pi"), Some("stress")));
        assert!(parse("--quick").unwrap().quick);
    }

    #[test]
    fn a_kernel_selects_its_machines() {
        let machines = |line| parse(line).unwrap().machines().collect::<Vec<_>>();
        assert_eq!(machines(""), On::ALL);
        assert_eq!(machines("--kernel rt-probe"), [On::ProbeCounted, On::ProbeCountedTwo, On::ProbeTwo]);
        assert_eq!(machines("--kernel rt-lockstat"), [On::LockstatTwo]);
        assert!(machines("--quick").iter().all(|on| !on.flavour().is_built()));
        let error = parse("--kernel stock").unwrap_err().to_string();
        assert!(error.contains("no machine with the kernel `stock`"), "{error}");
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for line in [
            "quick",
            "--only",
            "--host",
            "--kernel",
            "--kernel windows",
            "--bless --quick",
            "--bless --host pi",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
