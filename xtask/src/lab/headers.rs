//! What modules for a kernel are built with: the build tree of one that the lab has built, or Debian's packages of headers
//! for one of its images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arch::Arch;
use super::trouble::Interrupt;
use super::workdir::at;
use super::{apt, build, debs};
use crate::Result;

/// Where a kernel in the cache has it.
pub(super) const BUILD_TREE: &str = "build";

/// Where Debian's packages lie in the tree that they are unpacked to.
const DEBIAN: &str = "usr/src";

/// Downloads Debian's `packages` and unpacks them to the build tree of the kernel in `ready`.
pub(super) fn fetch(packages: &[String], work: &Path, ready: &Path, interrupt: &Interrupt) -> Result {
    let (place, tree) = (work.join("headers"), ready.join(BUILD_TREE));
    for directory in [&place, &tree] {
        fs::create_dir_all(directory).map_err(at(directory))?;
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    for deb in apt::fetch(&packages, Arch::Amd64, &place, interrupt)? {
        debs::unpack(&deb, &tree, interrupt)?;
    }
    Ok(())
}

/// The make that builds modules with the build tree at `tree`.
pub(super) fn make(tree: &Path) -> Result<Command> {
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
    // The makefile of a package names the other one by the place where it would be installed, and the compiler by a version.
    make.arg("-f").arg(Path::new("..").join(common).join("Makefile")).arg("CC=gcc");
    // Nobody asks our modules for their types, which would take a further tool.
    make.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
    Ok(make)
}

/// Of the directories of Debian's packages, that of the kernel's own headers and that of all variants.
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
    use crate::scratch::Scratch;

    #[test]
    fn tells_the_packages_apart() {
        let names = ["linux-kbuild-6.12", "linux-headers-6.12-common-rt", "linux-headers-6.12-rt-amd64"];
        let names = names.map(PathBuf::from);
        let (own, common) = parts(&names).unwrap();
        assert_eq!(own, Path::new("linux-headers-6.12-rt-amd64"));
        assert_eq!(common, Path::new("linux-headers-6.12-common-rt"));
        assert_eq!(parts(&names[..2]), None);
    }

    #[test]
    fn says_so_if_headers_are_missing() {
        let scratch = Scratch::new("headers").unwrap();
        fs::create_dir_all(scratch.path().join(DEBIAN)).unwrap();
        let error = make(scratch.path()).unwrap_err().to_string();
        assert!(error.contains("is not complete"), "{error}");
    }
}
