//! Programs from Debian packages that run in the guest: unpacked into the cache, not installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use xtask_support::Result;

use super::{apt, unpack_package};
use crate::arch::Arch;
use crate::trouble::Interrupt;
use crate::workdir::{self, Workdir, at};

/// Packages unpacked into one tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debs {
    /// The tree's name in the cache.
    name: &'static str,
    packages: &'static [&'static str],
    arch: Arch,
}

/// cyclictest, hackbench and pi_stress, and the library that cyclictest needs.
pub(crate) const RT_TESTS: Debs =
    Debs { name: "rt-tests", packages: &["rt-tests", "libnuma1"], arch: Arch::Amd64 };

/// The same for 64-bit ARM.
const RT_TESTS_ARM64: Debs =
    Debs { name: "rt-tests-arm64", packages: &["rt-tests", "libnuma1"], arch: Arch::Arm64 };

/// Returns those for guests with this processor.
pub(crate) fn rt_tests(arch: Arch) -> Debs {
    match arch {
        Arch::Amd64 => RT_TESTS,
        Arch::Arm64 => RT_TESTS_ARM64,
    }
}

/// The Debian packages of a guest for 64-bit ARM: its tools, and the libraries of Rust programs.
pub(crate) const ARM64: Debs =
    Debs { name: "arm64", packages: &["busybox-static", "libc6", "libgcc-s1"], arch: Arch::Arm64 };

/// The libraries of Rust programs.
const LIBRARIES: [&str; 6] =
    ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1"];

/// The loader, by the path in Rust programs.
const LOADER: &str = "/lib/ld-linux-aarch64.so.1";

impl Debs {
    /// Returns the path of the tree, which may not exist yet.
    fn tree(self) -> PathBuf {
        workdir::cache().join("packages").join(self.name)
    }

    /// Returns the path of a program, which may not exist yet.
    pub(crate) fn program(self, name: &str) -> PathBuf {
        self.tree().join("usr/bin").join(name)
    }

    /// Returns the path of busybox.
    pub(crate) fn busybox(self) -> PathBuf {
        self.tree().join("bin/busybox")
    }

    /// Returns the paths of the libraries in the guest and here.
    pub(crate) fn libraries(self) -> BTreeMap<String, PathBuf> {
        let directory = self.tree().join("lib/aarch64-linux-gnu");
        let library = |name: &str| (format!("/lab/lib/{name}"), directory.join(name));
        let loader = (LOADER.to_owned(), directory.join("ld-linux-aarch64.so.1"));
        LIBRARIES.map(library).into_iter().chain([loader]).collect()
    }

    /// Returns `true` if `program` belongs to them.
    pub(crate) fn has(self, program: &Path) -> bool {
        program.starts_with(self.tree())
    }

    /// Downloads and unpacks them if the cache does not have them.
    pub(crate) fn get(self, interrupt: &Interrupt) -> Result {
        let tree = self.tree();
        if tree.exists() {
            return Ok(());
        }
        let work = Workdir::new()?;
        let ready = work.path().join("ready");
        fs::create_dir_all(&ready).map_err(at(&ready))?;
        for deb in apt::fetch(self.packages, self.arch, work.path(), interrupt)? {
            unpack_package(&deb, &ready, &[], interrupt)?;
        }
        // Complete under its name, or absent.
        let parent = tree.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).map_err(at(parent))?;
        if let Err(error) = fs::rename(&ready, &tree)
            && !tree.exists()
        {
            return Err(at(&tree)(error).into());
        }
        Ok(())
    }
}

/// Returns the directories of the shared libraries of `program`, if it is in such a tree.
pub(crate) fn libraries(program: &Path) -> Vec<PathBuf> {
    let packages = workdir::cache().join("packages");
    let Some(name) = program.strip_prefix(&packages).ok().and_then(|rest| rest.iter().next()) else {
        return Vec::new();
    };
    let system = packages.join(name).join("usr/lib");
    let triplets = fs::read_dir(system).into_iter().flatten().flatten().map(|entry| entry.path());
    triplets.filter(|path| path.is_dir()).collect()
}
