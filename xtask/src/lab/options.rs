//! The words after `cargo xtask lab run` and `lab shell`.

use std::path::PathBuf;
use std::time::Duration;

use super::machine::Machine;
use super::modules::Module;
use super::package::Flavour;
use crate::Result;

pub(crate) const USAGE: &str = "\
usage: cargo xtask lab run [OPTIONS] [--] CMD…    boot a kernel in QEMU, run CMD in it, exit with its status
       cargo xtask lab shell [OPTIONS]            the same with a prompt; `exit` or Ctrl-D ends it
       cargo xtask lab kernel [--cached] NAME     get a kernel ready: download it, or build it from the newest source;
                                                  cached: only say where it is, and fail if it is not there
       cargo xtask lab test [--quick] [--kernel NAME]
                                                  what Punctual promises, tried under PREEMPT_RT on several machines;
                                                  quick: the most confidence in two minutes
           [--only TEXT] [--host USER@BOARD] [--bless]
                                                  cases with this in their names; on a real machine, over ssh; write down
                                                  the counted figures in lab/figures.txt

CMD is a program of the host, given by a path with a slash in it, or one of the guest, whose tools are busybox's.
Options:
    --kernel NAME       rt: Debian's PREEMPT_RT image (the default); stock: its ordinary one; rt-probe: one of our own with
                        tracers and simulated devices; rt-lockstat: that one with statistics of locks;
                        rt-arm64: Debian's PREEMPT_RT image for 64-bit ARM, on a machine with that
    --cpus N            1 unless told otherwise, at most 8
    --memory MB         512 unless told otherwise
    --timeout S         end it after so many seconds, counted from the start of the boot; 120 unless told otherwise
    --icount            count time in instructions: with one CPU two runs are the same to the byte; several take turns
    --append WORDS      further parameters of the kernel, in one word of the shell: --append 'isolcpus=1 nohz_full=1'
    --with FILE         a further file for /lab/bin of the guest, which is in its PATH; may be repeated
    --module 'NAME PARAMETER=VALUE…'
                        load one of lab/modules before CMD runs; may be repeated; all of them are in /lab/modules then
    --host USER@BOARD   run CMD on that machine over ssh instead of in QEMU; of the options --timeout, --with and --results
    --results DIR       where the files go that CMD leaves in its working directory; target/lab/results otherwise";

/// What the words ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) flavour: Flavour,
    pub(crate) machine: Machine,
    pub(crate) timeout: Duration,
    pub(crate) with: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    pub(crate) results: Option<PathBuf>,
    /// A real machine to run on.
    pub(crate) host: Option<String>,
    pub(crate) command: Vec<String>,
}

impl Options {
    /// Reads the options, and what follows them as the command.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            flavour: Flavour::Rt,
            machine: Machine { cpus: 1, memory: 512, counted: false, append: String::new() },
            timeout: Duration::from_secs(120),
            with: Vec::new(),
            modules: Vec::new(),
            results: None,
            host: None,
            command: Vec::new(),
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
            match word.as_str() {
                "--kernel" => options.flavour = Flavour::named(value()?)?,
                "--cpus" => options.machine.cpus = number(word, value()?, 1, 8)?,
                "--memory" => options.machine.memory = number(word, value()?, 64, 65_536)?,
                "--timeout" => {
                    options.timeout = Duration::from_secs(number(word, value()?, 1, 86_400)?.into())
                }
                "--icount" => options.machine.counted = true,
                "--append" => append(value()?, &mut options.machine.append)?,
                "--with" => options.with.push(value()?.into()),
                "--module" => options.modules.push(Module::parse(value()?)?),
                "--host" => options.host = Some(value()?.clone()),
                "--results" => options.results = Some(value()?.into()),
                "--" => {
                    options.command = words.by_ref().cloned().collect();
                }
                flag if flag.starts_with('-') => {
                    return Err(format!("unknown option `{flag}`\n{USAGE}").into());
                }
                _ => {
                    options.command.push(word.clone());
                    options.command.extend(words.by_ref().cloned());
                }
            }
        }
        if let Some(file) = options.with.iter().find(|file| !file.is_file()) {
            return Err(format!("--with {}: there is no such file", file.display()).into());
        }
        Ok(options)
    }
}

/// Adds kernel parameters to `all`.
fn append(words: &str, all: &mut String) -> Result {
    if words.chars().any(char::is_control) {
        return Err("--append: the parameters of a kernel are one line".into());
    }
    // The kernel's command line holds 2048 bytes on x86, ours included.
    if all.len() + words.len() > 1500 {
        return Err("--append: the kernel takes no more than 2048 bytes in all".into());
    }
    if let Some(word) = words.split_whitespace().find(|word| word.starts_with("lab=")) {
        return Err(format!("--append {word}: the lab itself sets this").into());
    }
    if !all.is_empty() {
        all.push(' ');
    }
    all.push_str(words);
    Ok(())
}

fn number(option: &str, text: &str, least: u32, most: u32) -> Result<u32> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option} {text}: it takes a number from {least} to {most}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: u32, memory: u32) -> Machine {
        Machine { cpus, memory, counted: false, append: String::new() }
    }

    #[test]
    fn kernel_parameters_add_up() {
        let words = ["--append", "isolcpus=1 nohz_full=1", "--append", "threadirqs", "ls"];
        let options = Options::parse(&words.map(str::to_owned)).unwrap();
        assert_eq!(options.machine.append, "isolcpus=1 nohz_full=1 threadirqs");
        let refused =
            |word: &str| Options::parse(&["--append".to_owned(), word.to_owned()]).unwrap_err().to_string();
        assert!(refused("quiet lab=shell").contains("lab=shell: the lab itself"));
        assert!(refused("a\nb").contains("one line"));
        assert!(refused(&"x".repeat(2000)).contains("2048 bytes"));
    }

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_the_options_is_the_command() {
        let options = parse("--kernel stock --cpus 2 --memory 256 --timeout 9 -- ls -l --cpus 3").unwrap();
        assert_eq!(options.flavour, Flavour::Stock);
        assert_eq!(options.machine, machine(2, 256));
        assert_eq!(options.timeout, Duration::from_secs(9));
        assert_eq!(options.command, ["ls", "-l", "--cpus", "3"]);
        assert_eq!(parse("uname -- -v").unwrap().command, ["uname", "--", "-v"]);
        assert!(parse("").unwrap().command.is_empty());
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        let message = |line: &str| parse(line).unwrap_err().to_string();
        assert!(message("--cpus").contains("--cpus needs a value"));
        assert!(message("--cpus 0 ls").contains("from 1 to 8"));
        assert!(message("--memory much ls").contains("--memory much"));
        assert!(message("--kernel windows ls").contains("no kernel `windows`"));
        assert!(message("--speed 3 ls").contains("unknown option `--speed`"));
        assert!(message("--with /no/such ls").contains("no such file"));
    }
}
