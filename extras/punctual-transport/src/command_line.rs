//! The command line of a transport.

use crate::Network;

/// The limit of the worker's memory without `--memory`, in MiB.
const DEFAULT_MIB: u64 = 256;
/// The range of `--memory`, in MiB: a network library does not start with less.
const MIB_RANGE: std::ops::RangeInclusive<u64> = 16..=1 << 20;

/// A parsed command line.
pub(crate) enum Parsed<O> {
    Run { app: String, options: O, memory_bytes: u64 },
    Help,
    Wrong,
}

pub(crate) fn parse<N: Network>(arguments: &[String]) -> Parsed<N::Options> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mib, rest) = match words[..] {
        ["--help" | "-h"] => return Parsed::Help,
        ["--memory", mib, ..] => (mib.parse().ok(), &arguments[2..]),
        _ => (Some(DEFAULT_MIB), arguments),
    };
    let (Some(mib), [app, operands @ ..]) = (mib.filter(|mib| MIB_RANGE.contains(mib)), rest) else {
        return Parsed::Wrong;
    };
    match N::options(app, operands) {
        Some(options) if !app.starts_with('-') => {
            Parsed::Run { app: app.clone(), options, memory_bytes: mib << 20 }
        }
        _ => Parsed::Wrong,
    }
}

pub(crate) fn usage<N: Network>() -> String {
    format!(
        "usage: punctual-{} [--memory MIB] APP {}\n\n{}

  APP           the app's name, its process number, or the path of its socket
  --memory MIB  limit of the memory, {DEFAULT_MIB} by default; beyond it, the transport is restarted

exit status: 0 if the app has ended, 1 after an error, 2 if the arguments are wrong",
        N::NAME,
        N::OPERANDS,
        N::HELP,
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use punctual_bridge::transport::OutgoingMessage;

    use super::*;
    use crate::App;

    struct Unused;

    impl Network for Unused {
        const NAME: &'static str = "unused";
        const OPERANDS: &'static str = "[NODE]";
        const HELP: &'static str = "Carries nothing.";
        type Options = Option<String>;
        type Error = Infallible;

        fn options(_: &str, operands: &[String]) -> Option<Option<String>> {
            (operands.len() <= 1).then(|| operands.first().cloned())
        }

        fn connect(_: Option<String>, _: App) -> Result<Self, Infallible> {
            Ok(Self)
        }

        fn publish(&mut self, _: &OutgoingMessage<'_>) -> Result<(), String> {
            Ok(())
        }
    }

    fn parsed(words: &[&str]) -> Option<(String, Option<String>, u64)> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        match parse::<Unused>(&words) {
            Parsed::Run { app, options, memory_bytes } => Some((app, options, memory_bytes)),
            Parsed::Help | Parsed::Wrong => None,
        }
    }

    #[test]
    fn accepts_memory_app_and_operands() {
        assert_eq!(parsed(&["gimbal"]), Some(("gimbal".into(), None, 256 << 20)));
        let with_node = Some(("gimbal".into(), Some("node".into()), 64 << 20));
        assert_eq!(parsed(&["--memory", "64", "gimbal", "node"]), with_node);
        assert!(matches!(parse::<Unused>(&["--help".into()]), Parsed::Help));
        assert!(usage::<Unused>().starts_with("usage: punctual-unused [--memory MIB] APP [NODE]\n"));
    }

    #[test]
    fn rejects_wrong_arguments() {
        for words in [
            &[][..],
            &["--memory", "64"],
            &["--memory", "15", "gimbal"],
            &["--memory", "much", "gimbal"],
            &["--memory"],
            &["--verbose"],
            &["gimbal", "a", "b"],
        ] {
            assert_eq!(parsed(words), None, "{words:?}");
        }
    }
}
