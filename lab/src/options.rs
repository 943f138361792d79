//! The command line of the lab.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, value_parser};
use xtask_support::Result;

use crate::driver::machine::Machine;
use crate::figures::command::Options as Figures;
use crate::kernels::modules::Module;
use crate::kernels::package::Flavour;
use crate::suite::selection::Selection;

/// Runs programs on a PREEMPT_RT kernel, in QEMU or on a board over ssh.
#[derive(Debug, Parser)]
#[command(name = "lab", bin_name = "cargo xtask lab")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Boot a kernel in QEMU, run a command in it, and exit with the status of the command
    ///
    /// The lab itself exits with 124 after a timeout, with 130 if it was interrupted, with 141 if
    /// its output is closed, and with 125 on other errors.
    Run(Run),
    /// Boot a kernel in QEMU and open a shell in it; `exit` or Ctrl-D ends it
    Shell(Boot),
    /// Download or build a kernel, and print its directory
    Kernel {
        /// Print the directory of a cached kernel, and fail if it does not exist
        #[arg(long)]
        cached: bool,
        #[arg(value_parser = Flavour::named)]
        name: Flavour,
    },
    /// Run the suite: Punctual's guarantees under PREEMPT_RT, on several machines
    ///
    /// It exits with 1 if a case has failed, and with 124, 125 or 130 if the lab has.
    Test(Selection),
    /// Measure the cost of operations in instructions, and compare it with lab/figures.txt
    Figures(Figures),
}

/// The machine to boot, and its files.
#[derive(Args, Debug)]
pub(crate) struct Boot {
    /// Kernel to boot: `rt` is Debian's PREEMPT_RT image, `stock` its default one, `rt-arm64` its
    /// PREEMPT_RT image for 64-bit ARM; `rt-probe` is built by the lab, with tracers and simulated
    /// devices; `rt-lockstat` adds lock statistics
    #[arg(long, value_name = "NAME", default_value = "rt", value_parser = Flavour::named)]
    pub(crate) kernel: Flavour,

    /// CPUs of the machine, from 1 to 8
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=8))]
    cpus: u32,

    /// Memory of the machine, in MB
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = value_parser!(u32).range(64..=65_536))]
    memory: u32,

    /// Time limit in seconds, from the start of the boot
    #[arg(long, value_name = "S", default_value = "120", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Additional kernel parameters, as in `--append 'isolcpus=1 nohz_full=1'`; may be repeated
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true, value_parser = parameters)]
    append: Vec<String>,

    /// Additional file for /lab/bin of the guest, which is in its PATH; may be repeated
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) with: Vec<PathBuf>,

    /// Load a module of lab/modules before the command runs; may be repeated. The guest has all of
    /// them in /lab/modules
    #[arg(long = "module", value_name = "NAME PARAMETER=VALUE…", value_parser = Module::parse)]
    pub(crate) modules: Vec<Module>,

    /// Give the machine a network, in which this one is 10.0.2.2
    #[arg(long)]
    pub(crate) network: bool,

    /// Directory for the files that the command leaves in its working directory [default:
    /// target/lab/results]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) boot: Boot,

    /// Count time in instructions: with one CPU, two runs are identical; several CPUs take turns
    #[arg(long, conflicts_with = "network")]
    pub(crate) icount: bool,

    /// Run on this machine over ssh instead of in QEMU; only --timeout, --with and --results apply
    #[arg(long, value_name = "USER@BOARD")]
    pub(crate) host: Option<String>,

    /// Host program, as a path with a slash, or guest program, including busybox's tools
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

impl Boot {
    /// Returns the machine that the options describe, without its time base.
    pub(crate) fn machine(&self) -> Result<Machine> {
        let append = self.append.join(" ");
        // On x86 the kernel's command line is limited to 2048 bytes, including the lab's own
        // parameters.
        if append.len() > 1500 {
            return Err("--append: the kernel takes no more than 2048 bytes in all".into());
        }
        let Self { cpus, memory, network, .. } = *self;
        Ok(Machine { cpus, memory, network, append, ..Machine::default() })
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected a number from 1 to 86400".to_owned()),
    }
}

fn parameters(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("the parameters of a kernel are one line".to_owned());
    }
    match text.split_whitespace().find(|word| word.starts_with("lab=")) {
        Some(word) => Err(format!("`{word}`: the lab sets this parameter itself")),
        None => Ok(text.to_owned()),
    }
}

pub(crate) fn file(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    if path.is_file() { Ok(path) } else { Err("there is no such file".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Run, String> {
        let words = ["lab", "run"].into_iter().chain(words);
        match Arguments::try_parse_from(words).map_err(|error| error.to_string())?.action {
            Action::Run(run) => Ok(run),
            other => panic!("{other:?}"),
        }
    }

    fn parse(line: &str) -> Result<Run, String> {
        run(line.split_whitespace())
    }

    #[test]
    fn joins_kernel_parameters() {
        let append = |word: &str| run(["--append", "isolcpus=1 nohz_full=1", "--append", word, "ls"]);
        let machine = append("threadirqs").unwrap().boot.machine().unwrap();
        assert_eq!(machine.append, "isolcpus=1 nohz_full=1 threadirqs");
        assert!(append("quiet lab=shell").unwrap_err().contains("`lab=shell`: the lab sets"));
        assert!(append("a\nb").unwrap_err().contains("one line"));
        let long = append(&"x".repeat(2000)).unwrap().boot.machine().unwrap_err().to_string();
        assert!(long.contains("2048 bytes"), "{long}");
    }

    #[test]
    fn passes_words_after_options_to_the_command() {
        let run = parse("--kernel stock --cpus 2 --memory 256 --timeout 9 -- ls -l --cpus 3").unwrap();
        assert_eq!((run.boot.kernel, run.boot.timeout), (Flavour::Stock, Duration::from_secs(9)));
        let machine = Machine { cpus: 2, memory: 256, ..Machine::default() };
        assert_eq!(run.boot.machine().unwrap(), machine);
        assert_eq!(run.command, ["ls", "-l", "--cpus", "3"]);
        assert_eq!(parse("ls -l --cpus 3").unwrap().command, ["ls", "-l", "--cpus", "3"]);
        assert_eq!(parse("uname -- -v").unwrap().command, ["uname", "--", "-v"]);
    }

    #[test]
    fn rejects_unusable_options() {
        for (line, reason) in [
            ("", "<CMD>"),
            ("--cpus", "--cpus <N>"),
            ("--cpus 0 ls", "1..=8"),
            ("--memory much ls", "'much'"),
            ("--kernel windows ls", "no kernel `windows`"),
            ("--speed 3 ls", "'--speed'"),
            ("--with /no/such ls", "no such file"),
            ("--timeout 0 ls", "from 1 to 86400"),
            // Messages arrive according to the host's time.
            ("--icount --network ls", "cannot be used with"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn rejects_command_for_shell() {
        for line in ["lab shell ls", "lab shell --icount", "lab shell --host pi"] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
