//! The guest's first file system: busybox, kernel modules, and the programs to run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_process::child::BoundedCommand;
use xtask_support::Result;
use xtask_support::process::TOOL_LIMIT;

use super::cpio::Archive;
use crate::kernels::debs::{self, Debs};
use crate::kernels::modules::{self, Module};
use crate::kernels::{Kernel, Purpose};
use crate::tools;
use crate::workdir::at;

/// The first process of the guest.
const INIT: &[u8] = include_bytes!("../../init");

/// The directory of host programs in the guest, which is in its `PATH`.
pub(crate) const PROGRAMS: &str = "/lab/bin";

/// The addresses of this machine and of the guest in QEMU's network.
pub(crate) const HOST: &str = "10.0.2.2";
const GUEST: &str = "10.0.2.15/24";

/// A command to run in the guest, and the host files that it needs.
#[derive(Default)]
pub(crate) struct Job {
    /// A program and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    /// Host files that are copied to [`PROGRAMS`]; programs are copied with their shared libraries.
    pub(crate) programs: Vec<PathBuf>,
    /// Scripts for [`PROGRAMS`], by name.
    pub(crate) scripts: Vec<(String, String)>,
    /// Our modules for the guest, with their paths here.
    pub(crate) modules: Vec<(String, PathBuf)>,
    /// The modules loaded before the command runs.
    pub(crate) load: Vec<Module>,
    /// `true` if the guest has a network.
    pub(crate) network: bool,
}

impl Job {
    /// Returns the job of running `command`, which may be a host program, given by a path, or a
    /// program of the guest.
    pub(crate) fn new(mut command: Vec<String>) -> Result<Self> {
        let mut programs = Vec::new();
        if let Some(program) = command.first_mut()
            && program.contains('/')
        {
            let path = PathBuf::from(&*program);
            if path.is_file() {
                *program = in_guest(&path);
                programs.push(path);
            } else if path.is_relative() {
                return Err(format!(
                    "there is no file {program}; a program of the guest goes by its name or its absolute path"
                )
                .into());
            }
        }
        Ok(Self { command, programs, ..Self::default() })
    }

    /// Returns the shell script that runs it; without a command it only sets the variables.
    pub(crate) fn script(&self) -> String {
        let mut script = String::new();
        for (name, value) in &self.environment {
            script += &format!("export {name}={}\n", quoted(value));
        }
        if self.network {
            script += &format!(
                "ip addr add {GUEST} dev eth0 && ip link set eth0 up && ip route add default via {HOST}\n"
            );
        }
        if self.command.is_empty() {
            return script;
        }
        let words: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        script + "exec " + &words.join(" ") + "\n"
    }
}

/// Returns the path of a host program in the guest.
pub(crate) fn in_guest(program: &Path) -> String {
    format!("{PROGRAMS}/{}", program.file_name().unwrap_or_default().to_string_lossy())
}

/// Quotes `word` for a shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns `Err` if two programs have the same name.
fn reject_duplicate_names(programs: &[PathBuf]) -> Result {
    let mut names = BTreeMap::new();
    for program in programs {
        if let Some(other) = names.insert(in_guest(program), program).filter(|other| *other != program) {
            let (one, two) = (other.display(), program.display());
            return Err(format!("{one} and {two} have one name, and the guest has room for one of it").into());
        }
    }
    Ok(())
}

/// Returns the archive to boot `kernel` with, so that it runs `job`.
pub(crate) fn archive(kernel: &Kernel, job: &Job) -> Result<Vec<u8>> {
    let userland = kernel.arch.userland();
    let busybox = match userland {
        Some(userland) => userland.busybox(),
        None => tools::require(["busybox"])?[0].clone(),
    };
    if !shared_libraries(&busybox)?.is_empty() {
        return Err(format!(
            "{} needs shared libraries, which the guest does not have before it runs; install busybox-static",
            busybox.display()
        )
        .into());
    }
    let mut archive = Archive::default();
    let mut add = |to: &str, from: &Path| -> Result {
        archive.file(to.trim_start_matches('/'), &fs::read(from).map_err(at(from))?);
        Ok(())
    };
    add("bin/busybox", &busybox)?;
    let [share, devices, spare, network] =
        [Purpose::Share, Purpose::Device, Purpose::Spare, Purpose::Network]
            .map(|purpose| kernel.modules(purpose));
    let network = if job.network { network } else { Vec::new() };
    for module in [&share, &devices, &spare, &network].into_iter().flatten() {
        add(&format!("lab/modules/{module}"), &kernel.module(module))?;
    }
    for (name, from) in &job.modules {
        add(&modules::in_guest(name), from)?;
    }
    // Shared libraries can be determined only for host programs.
    let mut libraries = userland.map(Debs::libraries).unwrap_or_default();
    reject_duplicate_names(&job.programs)?;
    for program in &job.programs {
        check_machine(program, kernel.arch.uname())?;
        add(&in_guest(program), program)?;
        if userland.is_none() {
            libraries.extend(shared_libraries(program)?);
        }
    }
    for (to, from) in libraries {
        add(&to, &from)?;
    }
    archive.link("bin/sh", "busybox");
    archive.file("init", INIT);
    for (purpose, names) in [(Purpose::Share, share), (Purpose::Device, devices)] {
        let list = format!("lab/{}", purpose.list());
        archive.file(&list, names.iter().map(|name| format!("{name}\n")).collect::<String>().as_bytes());
    }
    let network = network.iter().map(|module| format!("{module}\n"));
    let load = |module: &Module| format!("{}.ko {}\n", module.name, module.parameters);
    archive.file("lab/load.list", network.chain(job.load.iter().map(load)).collect::<String>().as_bytes());
    archive.file("lab/command", job.script().as_bytes());
    for (name, text) in &job.scripts {
        archive.file(&format!("lab/bin/{name}"), text.as_bytes());
    }
    Ok(archive.finish())
}

/// Returns the shared libraries of `program`: their paths in the guest and here.
fn shared_libraries(program: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let [ldd] = tools::require(["ldd"])?;
    let mut command = Command::new(ldd);
    let own = debs::libraries(program);
    if !own.is_empty() {
        command.env("LD_LIBRARY_PATH", std::env::join_paths(own)?);
    }
    // `ldd` treats a name without a slash as a local file, but warns about it.
    let output = command.arg(std::path::absolute(program)?).env("LC_ALL", "C").output_within(TOOL_LIMIT)?;
    // It fails for static programs and other files; neither needs libraries.
    libraries(&String::from_utf8_lossy(&output.stdout))
        .map_err(|error| format!("{}: {error}", program.display()).into())
}

/// Parses the output of `ldd`.
fn libraries(text: &str) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        let (wanted, place) = match line.split_once(" => ") {
            Some((wanted, place)) => (wanted, place.split_whitespace().next().unwrap_or_default()),
            None => (line, line.split_whitespace().next().unwrap_or_default()),
        };
        if line.ends_with("=> not found") {
            return Err(format!("its library {wanted} is not found").into());
        }
        let Some(name) = Path::new(place).file_name().filter(|_| place.starts_with('/')) else { continue };
        let name = name.to_string_lossy();
        // The program contains the whole path of its loader, and finds the others in the search
        // path.
        let to = if name.starts_with("ld-linux") { place.to_owned() } else { format!("/lab/lib/{name}") };
        found.insert(to, place.into());
    }
    Ok(found)
}

/// Requires that `program`, if it is an ELF file, is for `architecture`.
pub(crate) fn check_machine(program: &Path, architecture: &str) -> Result {
    let bytes = fs::read(program).map_err(at(program))?;
    match (machine(&bytes), architecture) {
        (None, _) | (Some("x86_64"), "x86_64") | (Some("aarch64"), "aarch64") => Ok(()),
        (Some(built), _) => Err(format!(
            "{} is built for {built}, but has to run on {architecture}; \
             build it with `cargo build --target {architecture}-unknown-linux-gnu`",
            program.display()
        )
        .into()),
    }
}

/// Returns the processor of an ELF file; `None` for any other file.
fn machine(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    // `e_machine`, in little-endian files, according to the ELF specification.
    match bytes.get(18..20)? {
        [62, 0] => Some("x86_64"),
        [183, 0] => Some("aarch64"),
        _ => Some("another processor"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_output_of_ldd() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found = libraries(text).unwrap();
        assert_eq!(found["/lab/lib/libc.so.6"], Path::new("/lib/x86_64-linux-gnu/libc.so.6"));
        assert_eq!(found["/lib64/ld-linux-x86-64.so.2"], Path::new("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(found.len(), 2);
        assert!(libraries("\tstatically linked\n").unwrap().is_empty());
        assert!(libraries("\tlibfoo.so.1 => not found\n").unwrap_err().to_string().contains("libfoo.so.1"));
    }

    #[test]
    fn rejects_programs_with_same_name() {
        let programs =
            |paths: &[&str]| reject_duplicate_names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        programs(&["/a/app", "/a/app", "/a/other"]).unwrap();
        let error = programs(&["/debug/app", "/release/app"]).unwrap_err().to_string();
        assert!(error.contains("/debug/app and /release/app have one name"), "{error}");
    }

    #[test]
    fn stages_host_programs_only() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let here = Job::new(words(&["/proc/self/exe", "x"])).unwrap();
        assert_eq!(here.command, ["/lab/bin/exe", "x"]);
        assert_eq!(here.programs, [Path::new("/proc/self/exe")]);
        assert!(Job::new(words(&["uname"])).unwrap().programs.is_empty());
        assert_eq!(Job::new(words(&["/only/there"])).unwrap().command, ["/only/there"]);
        assert!(Job::new(words(&["target/no-such-file"])).is_err());
    }

    #[test]
    fn passes_arguments_unchanged() {
        let mut job = Job::new(vec!["echo".to_owned(), "it's $HOME".to_owned()]).unwrap();
        job.environment.insert("PUNCTUAL_CPU".to_owned(), "a=1,b=0".to_owned());
        assert_eq!(job.script(), "export PUNCTUAL_CPU='a=1,b=0'\nexec 'echo' 'it'\\''s $HOME'\n");
    }

    #[test]
    fn rejects_program_for_another_processor() {
        assert_eq!(machine(b"#!/bin/sh\n"), None);
        let mut elf = [0; 64];
        elf[..4].copy_from_slice(b"\x7fELF");
        elf[18] = 183;
        assert_eq!(machine(&elf), Some("aarch64"));
        let own = std::env::current_exe().unwrap();
        check_machine(&own, std::env::consts::ARCH).unwrap();
        let error = check_machine(&own, "riscv64").unwrap_err().to_string();
        assert!(error.contains("to run on riscv64"), "{error}");
    }
}
