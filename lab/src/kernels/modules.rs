//! Our modules for the guest's kernel, from `lab/modules`, and for 64-bit ARM that of
//! `punctual-isolate`: built on first use, and cached with the kernel.
//!
//! They are cached under the hash of their sources, so a change creates others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask_support::{Result, cargo};

use super::{Kernel, apt, build, key, name, unpack_package};
use crate::arch::Arch;
use crate::tools;
use crate::trouble::{Interrupt, about};
use crate::workdir::{Workdir, at};

/// A module to load before the command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// The arguments of `insmod`: `name=value`, separated by spaces.
    pub(crate) parameters: String,
}

impl Module {
    /// Parses `NAME [PARAMETER=VALUE]...`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, parameters) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let names = names(&sources(Arch::Arm64)).map_err(|error| error.to_string())?;
        if !names.iter().any(|known| known == name) {
            return Err(format!("there is no module `{name}`; it is one of {}", names.join(", ")));
        }
        for word in parameters.split_whitespace() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "=_-.,:/".contains(c);
            if !word.contains('=') || !word.chars().all(plain) {
                return Err(format!("module {name}: `{word}` is no parameter; it takes NAME=VALUE"));
            }
        }
        Ok(Self { name: name.to_owned(), parameters: parameters.trim().to_owned() })
    }
}

/// Returns the path of a module in the guest.
pub(crate) fn in_guest(name: &str) -> String {
    format!("/lab/modules/{name}.ko")
}

/// Returns all our modules for `kernel`, with their names and paths.
pub(crate) fn get(kernel: &Kernel, interrupt: &Interrupt) -> Result<Vec<(String, PathBuf)>> {
    let tree = kernel.directory().join(BUILD_TREE);
    if !kernel.has_build_tree() {
        return Err(format!(
            "the lab has no headers for {}, so it builds no modules for it; use another kernel (--kernel)",
            kernel.package
        )
        .into());
    }
    let sources = sources(kernel.arch);
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for directory in &sources {
        for file in files(directory)? {
            let text = fs::read(&file).map_err(at(&file))?;
            parts.push([name(&file).as_bytes(), b"\0", text.as_slice()].concat());
        }
    }
    let cached = kernel.directory().join(format!("modules-{}", key(parts.iter().map(Vec::as_slice))));
    if !cached.is_dir() {
        tools::require_modules()?;
        let work = Workdir::new()?;
        let ready = work.path().join("ready");
        for directory in &sources {
            eprintln!("lab: building the modules in {} for {}", directory.display(), kernel.package);
            compile(&tree, kernel.arch, &files(directory)?, work.path(), &ready, interrupt)
                .map_err(|error| about("cannot build the modules", error))?;
        }
        if let Err(error) = fs::rename(&ready, &cached)
            && !cached.is_dir()
        {
            return Err(at(&cached)(error).into());
        }
    }
    let built = names(&sources)?.into_iter().map(|name| (name.clone(), cached.join(format!("{name}.ko"))));
    // `Kbuild` skips modules that this kernel does not support.
    Ok(built.filter(|(_, file)| file.exists()).collect())
}

/// Builds the modules of `files` with the kernel's build tree, and moves them to the directory
/// `ready`.
fn compile(
    tree: &Path,
    arch: Arch,
    files: &[PathBuf],
    work: &Path,
    ready: &Path,
    interrupt: &Interrupt,
) -> Result {
    let place = work.join("modules");
    if place.exists() {
        fs::remove_dir_all(&place).map_err(at(&place))?;
    }
    for directory in [&place, ready] {
        fs::create_dir_all(directory).map_err(at(directory))?;
    }
    for file in files {
        fs::copy(file, place.join(name(file))).map_err(at(file))?;
    }
    let mut make = make(tree, arch)?;
    // In such small code, a warning is an error.
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

/// Returns the directories of modules for a processor, each with a `Kbuild`.
fn sources(arch: Arch) -> Vec<PathBuf> {
    let own = cargo::root().join("lab/modules");
    match arch {
        Arch::Amd64 => vec![own],
        Arch::Arm64 => vec![own, cargo::root().join("crates/punctual-isolate/module")],
    }
}

/// Returns the sources of the modules, in a fixed order.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let is_source =
        |file: &PathBuf| file.extension().is_some_and(|extension| extension == "c" || extension == "h");
    files.retain(|file| is_source(file) || name(file) == "Kbuild");
    files.sort_unstable();
    Ok(files)
}

/// Returns the names of the modules: one per source.
fn names(directories: &[PathBuf]) -> Result<Vec<String>> {
    let stem = |file: &PathBuf| Some(file.file_name()?.to_str()?.strip_suffix(".c")?.to_owned());
    let mut names = Vec::new();
    for directory in directories {
        names.extend(files(directory)?.iter().filter_map(stem));
    }
    Ok(names)
}

/// The build tree of a cached kernel: that of the build, or Debian's header packages.
pub(super) const BUILD_TREE: &str = "build";

/// The directory of Debian's packages in the tree to which they are unpacked.
const DEBIAN: &str = "usr/src";

/// Downloads Debian's `packages` and unpacks them to the build tree of the kernel in `ready`.
pub(super) fn fetch_headers(
    packages: &[(Arch, String)],
    work: &Path,
    ready: &Path,
    interrupt: &Interrupt,
) -> Result {
    let tree = ready.join(BUILD_TREE);
    fs::create_dir_all(&tree).map_err(at(&tree))?;
    for arch in [Arch::Amd64, Arch::Arm64] {
        let names: Vec<&str> =
            packages.iter().filter(|(of, _)| *of == arch).map(|(_, name)| name.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        let place = work.join("headers").join(arch.debian());
        fs::create_dir_all(&place).map_err(at(&place))?;
        for deb in apt::fetch(&names, arch, &place, interrupt)? {
            unpack_package(&deb, &tree, &[], interrupt)?;
        }
    }
    Ok(())
}

/// Returns the make that builds modules for a processor with the build tree at `tree`.
fn make(tree: &Path, arch: Arch) -> Result<Command> {
    let debian = tree.join(DEBIAN);
    if !debian.is_dir() {
        return build::make(tree);
    }
    let entries = fs::read_dir(&debian).map_err(at(&debian))?;
    let names: Vec<PathBuf> = entries.flatten().map(|entry| entry.file_name().into()).collect();
    let (own, common) = parts(&names).ok_or_else(|| {
        format!("{} is not complete; delete the kernel's directory and try again", debian.display())
    })?;
    let mut make = build::make(&debian.join(own))?;
    // The makefile of a package refers to the other package by its installation path, and to the
    // compiler by a version.
    make.arg("-f").arg(Path::new("..").join(common).join("Makefile"));
    match arch {
        Arch::Amd64 => make.arg("CC=gcc"),
        Arch::Arm64 => {
            make.args(["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-", "CC=aarch64-linux-gnu-gcc"])
        }
    };
    // BTF type information for our modules is not needed, and would require another tool.
    make.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
    Ok(make)
}

/// Returns, from the directories of Debian's packages, that of the kernel's own headers and that of
/// all variants.
fn parts(names: &[PathBuf]) -> Option<(&Path, &Path)> {
    let headers = |name: &&PathBuf| name.to_string_lossy().starts_with("linux-headers-");
    let is_common = |name: &&PathBuf| name.to_string_lossy().contains("-common");
    let (common, own): (Vec<&PathBuf>, Vec<_>) = names.iter().filter(headers).partition(is_common);
    match (own.as_slice(), common.as_slice()) {
        ([own], [common]) => Some((own, common)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::scratch::Scratch;

    #[test]
    fn parses_module_and_parameters() {
        let module = Module::parse("punctual_responder form=hard in_line=3").unwrap();
        assert_eq!(module.name, "punctual_responder");
        assert_eq!(module.parameters, "form=hard in_line=3");
        assert_eq!(Module::parse("punctual_spi").unwrap().parameters, "");
        let error = |text| Module::parse(text).unwrap_err();
        assert!(error("teapot").contains("no module `teapot`; it is one of punctual_locks"));
        assert!(error("punctual_spi hot").contains("`hot` is no parameter"));
        assert!(error("punctual_spi a=$(reboot)").contains("is no parameter"));
    }

    #[test]
    fn builds_every_source() {
        for directory in sources(Arch::Arm64) {
            let kbuild = fs::read_to_string(directory.join("Kbuild")).unwrap();
            for name in names(&[directory]).unwrap() {
                assert!(kbuild.contains(&format!("{name}.o")), "{name}");
            }
        }
    }

    #[test]
    fn distinguishes_packages() {
        let names = ["linux-kbuild-6.12", "linux-headers-6.12-common-rt", "linux-headers-6.12-rt-amd64"];
        let names = names.map(PathBuf::from);
        let (own, common) = parts(&names).unwrap();
        assert_eq!(own, Path::new("linux-headers-6.12-rt-amd64"));
        assert_eq!(common, Path::new("linux-headers-6.12-common-rt"));
        assert_eq!(parts(&names[..2]), None);
    }

    #[test]
    fn error_names_missing_headers() {
        let scratch = Scratch::new("headers").unwrap();
        fs::create_dir_all(scratch.path().join(DEBIAN)).unwrap();
        let error = make(scratch.path(), Arch::Amd64).unwrap_err().to_string();
        assert!(error.contains("is not complete"), "{error}");
    }
}
