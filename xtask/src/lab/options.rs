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
                                                  quick: only what repeats to the byte

CMD is a program of the host, given by a path with a slash in it, or one of the guest, whose tools are busybox's.
Options:
    --kernel NAME       rt: Debian's PREEMPT_RT image (the default); stock: its ordinary one; rt-probe: one of our own with
                        tracers and simulated devices; rt-lockstat: that one with statistics of locks
    --cpus N            1 unless told otherwise, at most 8
    --memory MB         512 unless told otherwise
    --timeout S         end it after so many seconds, counted from the start of the boot; 120 unless told otherwise
    --icount            count time in instructions: with one CPU two runs are the same to the byte; several take turns
    --with FILE         a further file for /lab/bin of the guest, which is in its PATH; may be repeated
    --module 'NAME PARAMETER=VALUE…'
                        load one of lab/modules before CMD runs; may be repeated; all of them are in /lab/modules then
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
    pub(crate) command: Vec<String>,
}

impl Options {
    /// Reads the options, and what follows them as the command.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            flavour: Flavour::Rt,
            machine: Machine { cpus: 1, memory: 512, counted: false },
            timeout: Duration::from_secs(120),
            with: Vec::new(),
            modules: Vec::new(),
            results: None,
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
                "--with" => options.with.push(value()?.into()),
                "--module" => options.modules.push(Module::parse(value()?)?),
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

fn number(option: &str, text: &str, least: u32, most: u32) -> Result<u32> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option} {text}: it takes a number from {least} to {most}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_the_options_is_the_command() {
        let options = parse("--kernel stock --cpus 2 --memory 256 --timeout 9 -- ls -l --cpus 3").unwrap();
        assert_eq!(options.flavour, Flavour::Stock);
        assert_eq!(options.machine, Machine { cpus: 2, memory: 256, counted: false });
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
