//! Modules of our own for the guest's kernel, from `lab/modules`: built when first asked for, and kept beside the
//! kernel.
//!
//! They are kept under the hash of their sources, so that a change makes others.

use std::fs;
use std::path::{Path, PathBuf};

use super::headers::BUILD_TREE;
use super::kernel::Kernel;
use super::trouble::{Interrupt, about};
use super::workdir::{Workdir, at};
use super::{build, headers, key, tools};
use crate::{Result, cargo};

/// A module to load before the command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// What `insmod` is told: `name=value`, separated by spaces.
    pub(crate) parameters: String,
}

impl Module {
    /// Reads `NAME [PARAMETER=VALUE]...`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (name, parameters) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let names = names(&sources())?;
        if !names.iter().any(|known| known == name) {
            return Err(format!("there is no module `{name}`; it is one of {}", names.join(", ")).into());
        }
        for word in parameters.split_whitespace() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "=_-.,:/".contains(c);
            if !word.contains('=') || !word.chars().all(plain) {
                return Err(format!("module {name}: `{word}` is no parameter; it takes NAME=VALUE").into());
            }
        }
        Ok(Self { name: name.to_owned(), parameters: parameters.trim().to_owned() })
    }
}

/// The file in which a module is in the guest.
pub(crate) fn in_guest(name: &str) -> String {
    format!("/lab/modules/{name}.ko")
}

/// All our modules for `kernel`: the name of each and where it is.
pub(crate) fn get(kernel: &Kernel, interrupt: &Interrupt) -> Result<Vec<(String, PathBuf)>> {
    let tree = kernel.directory().join(BUILD_TREE);
    if !kernel.has_build_tree() {
        return Err(format!(
            "the lab has no headers for {}, and builds no modules of its own for it; it does for the other kernels (--kernel)",
            kernel.package
        )
        .into());
    }
    let sources = sources();
    let files = files(&sources)?;
    let parts: Vec<Vec<u8>> = files
        .iter()
        .map(|file| {
            let text = fs::read(file).map_err(at(file))?;
            Ok([name(file).as_bytes(), b"\0", text.as_slice()].concat())
        })
        .collect::<Result<_>>()?;
    let kept = kernel.directory().join(format!("modules-{}", key::of(parts.iter().map(Vec::as_slice))));
    if !kept.is_dir() {
        tools::require_modules()?;
        eprintln!("lab: building the modules in {} for {}", sources.display(), kernel.package);
        let work = Workdir::new()?;
        let ready = work.path().join("ready");
        compile(&tree, &files, work.path(), &ready, interrupt)
            .map_err(|error| about("cannot build the modules", error))?;
        if let Err(error) = fs::rename(&ready, &kept)
            && !kept.is_dir()
        {
            return Err(at(&kept)(error).into());
        }
    }
    Ok(names(&sources)?.into_iter().map(|name| (name.clone(), kept.join(format!("{name}.ko")))).collect())
}

/// Builds the modules of `files` with the kernel's build tree, and moves them to the directory `ready`.
fn compile(tree: &Path, files: &[PathBuf], work: &Path, ready: &Path, interrupt: &Interrupt) -> Result {
    let place = work.join("modules");
    for directory in [&place, ready] {
        fs::create_dir_all(directory).map_err(at(directory))?;
    }
    for file in files {
        fs::copy(file, place.join(name(file))).map_err(at(file))?;
    }
    let mut make = headers::make(tree)?;
    // A warning in code this small is a mistake.
    make.arg(format!("M={}", place.display())).args(["KCFLAGS=-Werror", "modules"]);
    build::run(&mut make, &work.join("log"), interrupt, &mut |_| {})?;
    for file in fs::read_dir(&place).map_err(at(&place))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "ko") {
            fs::rename(&path, ready.join(name(&path))).map_err(at(&path))?;
        }
    }
    Ok(())
}

fn sources() -> PathBuf {
    cargo::root().join("lab/modules")
}

/// What the modules are built of, in a fixed order.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let is_source =
        |file: &PathBuf| file.extension().is_some_and(|extension| extension == "c" || extension == "h");
    files.retain(|file| is_source(file) || name(file) == "Kbuild");
    files.sort_unstable();
    Ok(files)
}

/// The names of the modules: one for each source.
fn names(directory: &Path) -> Result<Vec<String>> {
    let stem = |file: &PathBuf| Some(file.file_name()?.to_str()?.strip_suffix(".c")?.to_owned());
    Ok(files(directory)?.iter().filter_map(stem).collect())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_module_and_its_parameters() {
        let module = Module::parse("punctual_responder form=hard in_line=3").unwrap();
        assert_eq!(module.name, "punctual_responder");
        assert_eq!(module.parameters, "form=hard in_line=3");
        assert_eq!(Module::parse("punctual_spi").unwrap().parameters, "");
        let error = |text| Module::parse(text).unwrap_err().to_string();
        assert!(error("teapot").contains("no module `teapot`; it is one of punctual_locks"));
        assert!(error("punctual_spi hot").contains("`hot` is no parameter"));
        assert!(error("punctual_spi a=$(reboot)").contains("is no parameter"));
    }

    #[test]
    fn every_source_is_built() {
        let kbuild = fs::read_to_string(sources().join("Kbuild")).unwrap();
        for name in names(&sources()).unwrap() {
            assert!(kbuild.contains(&format!("{name}.o")), "{name}");
        }
    }
}
