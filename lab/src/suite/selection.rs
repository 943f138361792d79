//! Selection of the cases for `cargo xtask lab test`, and of the machines.

use std::collections::BTreeSet;

use clap::Args;

use crate::cases::{Case, Setup};
use crate::kernels::package::Flavour;

/// The cases to run, and the machines.
#[derive(Args, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Only the machines with this kernel
    #[arg(long = "kernel", value_name = "NAME", value_parser = suite_kernel)]
    pub(crate) flavour: Option<Flavour>,

    /// Only cases with this text in their names
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,

    /// Print the names of the cases instead of running them
    #[arg(long)]
    pub(crate) list: bool,

    /// Run on this machine over ssh instead of in QEMU
    #[arg(long, value_name = "USER@BOARD")]
    pub(crate) host: Option<String>,
}

/// Returns the kernel of that name, if a machine of the suite boots it.
fn suite_kernel(name: &str) -> Result<Flavour, String> {
    let flavour = Flavour::named(name)?;
    if Setup::ALL.iter().all(|on| on.kernel != flavour) {
        return Err(format!("the suite has no machine with the kernel `{name}`"));
    }
    Ok(flavour)
}

impl Selection {
    /// Returns the machines to find cases for.
    pub(crate) fn machines(&self) -> impl Iterator<Item = Setup> {
        Setup::ALL.into_iter().filter(|on| self.flavour.is_none_or(|flavour| on.kernel == flavour))
    }

    /// Requires that the filter matches a case; with `--list`, prints the names of the cases and
    /// returns `true`.
    pub(crate) fn lists<'a>(&self, cases: impl Iterator<Item = &'a Case>) -> Result<bool, String> {
        let names: BTreeSet<&str> = cases.map(|case| case.name.as_str()).collect();
        if names.is_empty() {
            let filter = self.only.as_deref().unwrap_or_default();
            return Err(format!("no case of these machines has `{filter}` in its name; --list shows them"));
        }
        if self.list {
            names.iter().for_each(|name| println!("{name}"));
        }
        Ok(self.list)
    }

    /// Returns `true` if `case` is selected.
    pub(crate) fn has(&self, case: &Case) -> bool {
        self.only.as_ref().is_none_or(|text| case.name.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn parse(line: &str) -> Result<Selection, String> {
        let command = Selection::augment_args(Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(line.split_whitespace());
        let selection = matches.and_then(|matches| Selection::from_arg_matches(&matches));
        selection.map_err(|error| error.to_string())
    }

    #[test]
    fn reads_every_option() {
        assert_eq!(parse("").unwrap(), Selection::default());
        let board = parse("--host root@pi --only stress").unwrap();
        assert_eq!((board.host.as_deref(), board.only.as_deref()), (Some("root@pi"), Some("stress")));
        assert!(parse("--list").unwrap().list);
    }

    #[test]
    fn runs_only_machines_with_kernel() {
        let machines = |line| parse(line).unwrap().machines().collect::<Vec<_>>();
        assert_eq!(machines(""), Setup::ALL);
        assert_eq!(
            machines("--kernel rt-probe"),
            [Setup::PROBE_COUNTED, Setup::PROBE_COUNTED_TWO, Setup::PROBE_TWO]
        );
        assert_eq!(machines("--kernel rt-lockstat"), [Setup::LOCKSTAT_TWO]);
        assert_eq!(machines("--kernel rt-arm64"), [Setup::ARM_THREE, Setup::ARM_OTHER]);
        let error = parse("--kernel stock").unwrap_err();
        assert!(error.contains("no machine with the kernel `stock`"), "{error}");
    }

    #[test]
    fn rejects_filter_that_matches_no_case() {
        let cases = [Case::new("stress", &[], String::new(), None, |_| Ok(()))];
        let lists = |line| {
            let selection = parse(line).unwrap();
            selection.lists(cases.iter().filter(|case| selection.has(case)))
        };
        assert_eq!(lists("--only stre"), Ok(false));
        assert_eq!(lists("--list"), Ok(true));
        assert!(lists("--only typo").unwrap_err().starts_with("no case of these machines has `typo`"));
    }

    #[test]
    fn rejects_unusable_options() {
        for line in ["stress", "--only", "--host", "--kernel", "--kernel windows"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
