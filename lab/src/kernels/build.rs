//! Builds a kernel from Debian's source.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use xtask_support::Result;

use super::modules::BUILD_TREE;
use super::{pipe, unpack_package};
use crate::tools;
use crate::trouble::Interrupt;
use crate::workdir::at;

/// The interval of progress messages.
const REPORT: Duration = Duration::from_secs(20);

/// The number of lines of a build's output that an error shows.
const TAIL: usize = 25;

/// Creates the directory `ready` from the source package `deb`: the kernel with the options
/// `wanted`, and the files for building modules.
pub(super) fn build(wanted: &str, deb: &Path, work: &Path, ready: &Path, interrupt: &Interrupt) -> Result {
    let begun = Instant::now();
    let say = |phase: &str| eprintln!("lab: {}, {phase}", elapsed(begun));
    fs::create_dir_all(ready).map_err(at(ready))?;

    say("unpacking the source");
    let source = unpack(deb, work, interrupt)?;

    say("configuring");
    let fragment = work.join("fragment");
    fs::write(&fragment, wanted).map_err(at(&fragment))?;
    let log = work.join("log");
    let mut configure = make(&source)?;
    configure.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &fragment);
    run(&mut configure, &log, interrupt, &mut |_| {})?;
    let config = source.join(".config");
    let got = fs::read_to_string(&config).map_err(at(&config))?;
    let refused = refused(wanted, &got);
    if !refused.is_empty() {
        return Err(format!(
            "these options had no effect; check their dependencies:\n    {}",
            refused.join("\n    ")
        )
        .into());
    }

    say("compiling");
    let mut last = Instant::now();
    run(make(&source)?.args(["vmlinux", "modules"]), &log, interrupt, &mut |done| {
        if last.elapsed() >= REPORT {
            last = Instant::now();
            say(&format!("compiling, {done} steps done"));
        }
    })?;

    say("keeping what is needed");
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg("-o").arg(ready.join("vmlinux")).arg(source.join("vmlinux"));
    run(&mut strip, &log, interrupt, &mut |_| {})?;
    // The content of a distribution's header package, according to the kernel's own script.
    let headers = ready.join(BUILD_TREE);
    let mut install = make(&source)?;
    install.arg("run-command").arg(format!(
        "KBUILD_RUN_COMMAND=$(srctree)/scripts/package/install-extmod-build '{}'",
        headers.display()
    ));
    run(&mut install, &log, interrupt, &mut |_| {})?;
    fs::copy(&config, ready.join("config")).map_err(at(&config))?;
    Ok(())
}

/// Unpacks the source and returns its directory.
fn unpack(deb: &Path, work: &Path, interrupt: &Interrupt) -> Result<PathBuf> {
    unpack_package(deb, work, &["./usr/src/linux-source-*.tar.xz"], interrupt)?;
    let archive = only(&work.join("usr/src"))?;
    let tree = work.join("source");
    fs::create_dir_all(&tree).map_err(at(&tree))?;
    let mut tar = Command::new("tar");
    tar.args(["xJ", "-C"]).arg(&tree).arg("-f").arg(&archive);
    pipe(&mut tar, Stdio::null(), interrupt)?;
    fs::remove_file(&archive).map_err(at(&archive))?;
    only(&tree)
}

/// Returns the only entry of `directory`.
fn only(directory: &Path) -> Result<PathBuf> {
    let entries: Vec<_> = fs::read_dir(directory).map_err(at(directory))?.collect::<Result<_, _>>()?;
    match entries.as_slice() {
        [entry] => Ok(entry.path()),
        _ => Err(format!("there are {} entries in {}, not one", entries.len(), directory.display()).into()),
    }
}

/// Returns the kernel's make, in `directory`, with a reproducible environment.
pub(super) fn make(directory: &Path) -> Result<Command> {
    let [setpriv, nice] = tools::require(["setpriv", "nice"])?;
    let mut command = Command::new(setpriv);
    // It ends, with all its children, even if we are killed.
    command.args(["--pdeathsig", "TERM"]).arg(nice).args(["-n", "10", "make"]);
    command.arg(format!("-j{}", thread::available_parallelism().map_or(1, usize::from)));
    command.arg("-C").arg(directory);
    for variable in
        ["MAKEFLAGS", "MFLAGS", "ARCH", "CROSS_COMPILE", "KBUILD_OUTPUT", "KCFLAGS", "LOCALVERSION"]
    {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C");
    command.envs([
        ("KBUILD_BUILD_TIMESTAMP", "2024-01-01"),
        ("KBUILD_BUILD_USER", "punctual"),
        ("KBUILD_BUILD_HOST", "lab"),
    ]);
    Ok(command)
}

/// Runs `command` with its output in the file `log`; `progress` gets the number of lines so far.
///
/// The error contains the end of the output.
pub(super) fn run(
    command: &mut Command,
    log: &Path,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(usize),
) -> Result {
    let file = File::create(log).map_err(at(log))?;
    command.stdout(file.try_clone()?).stderr(file);
    let mut output = File::open(log).map_err(at(log))?;
    let mut lines = 0;
    let mut tick = || {
        let mut fresh = Vec::new();
        // An error affects only the count.
        if output.read_to_end(&mut fresh).is_ok() {
            lines += fresh.iter().filter(|&&byte| byte == b'\n').count();
        }
        progress(lines);
    };
    let status = interrupt.run_all(command, &mut tick)?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{status} from {}\n{}", command.get_program().display(), tail(log)?).into())
}

/// Returns the last lines of a file, indented.
fn tail(log: &Path) -> Result<String> {
    let mut file = File::open(log).map_err(at(log))?;
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(16 << 10)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(TAIL)..];
    Ok(format!("the end of its output:\n    {}", last.join("\n    ")))
}

/// Returns the lines of `wanted` that are missing in a configuration.
fn refused<'a>(wanted: &'a str, got: &str) -> Vec<&'a str> {
    let options = wanted.lines().filter(|line| line.starts_with("CONFIG_"));
    options.filter(|option| !got.lines().any(|line| line == *option)).collect()
}

fn elapsed(since: Instant) -> String {
    let seconds = since.elapsed().as_secs();
    format!("{}:{:02} min", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::scratch::Scratch;

    #[test]
    fn lists_ignored_options() {
        let wanted = "# comment\nCONFIG_A=y\n\nCONFIG_B=y\nCONFIG_LOCALVERSION=\"-x\"\n";
        assert!(refused(wanted, "CONFIG_B=y\nCONFIG_A=y\nCONFIG_LOCALVERSION=\"-x\"\n").is_empty());
        assert_eq!(
            refused(wanted, "CONFIG_A=y\n# CONFIG_B is not set\n"),
            ["CONFIG_B=y", "CONFIG_LOCALVERSION=\"-x\""]
        );
    }

    #[test]
    fn shows_end_of_failed_build_output() {
        let scratch = Scratch::new("build").unwrap();
        let log = scratch.path().join("log");
        let mut command = Command::new("sh");
        command
            .args(["-c", "for n in $(seq 100); do echo line $n; done; echo 'error: no teapot' >&2; exit 2"]);
        let error = run(&mut command, &log, &Interrupt::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("exit status: 2") && error.contains("error: no teapot"), "{error}");
        assert!(error.contains("line 99") && !error.contains("line 50\n"), "{error}");
    }

    #[test]
    fn reports_build_progress() {
        let scratch = Scratch::new("progress").unwrap();
        let mut seen = 0;
        let mut command = Command::new("sh");
        command.args(["-c", "echo 1; echo 2; echo 3"]);
        run(&mut command, &scratch.path().join("log"), &Interrupt::default(), &mut |lines| seen = lines)
            .unwrap();
        assert_eq!(seen, 3);
    }
}
