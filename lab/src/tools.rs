//! The host programs that the lab uses, and their packages.

use std::env;
use std::path::{Path, PathBuf};

use xtask_support::Result;

/// The script that installs the packages, and contains the list of them.
const SCRIPT: &str = include_str!("../packages.sh");

pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// The requirements for building kernel modules. One of the programs in Debian's header packages
/// needs the library.
const MODULES: [&str; 4] = ["make", "gcc", "ld", "/usr/lib/x86_64-linux-gnu/libelf.so.1"];

/// The additional requirements for building a kernel; the header is for the kernel's tools that
/// read object files.
const BUILD: [&str; 8] = ["flex", "bison", "bc", "pahole", "xz", "tar", "setpriv", "/usr/include/gelf.h"];

/// The requirements for guests and boards with 64-bit ARM.
const ARM64: [&str; 3] =
    ["qemu-system-aarch64", "aarch64-linux-gnu-gcc", "/usr/aarch64-linux-gnu/lib/crt1.o"];

/// Set to `required` if a missing lab is a failure rather than a reason to skip.
pub(crate) const REQUIRED: &str = "PUNCTUAL_TOOLS";

/// Returns `true` if the lab is required.
pub(crate) fn is_required() -> bool {
    env::var_os(REQUIRED).is_some_and(|value| value == "required")
}

/// Returns the path of `program`, from the directories that root searches, too: some systems keep
/// tools out of a user's path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(system)
        .map(|directory| directory.join(program))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns the path of each of `programs`; the error names every missing package, and the command
/// that installs them.
pub(crate) fn require<const N: usize>(programs: [&str; N]) -> Result<[PathBuf; N]> {
    let missing: Vec<&str> = programs.into_iter().filter(|program| find(program).is_none()).collect();
    if missing.is_empty() {
        return Ok(programs.map(|program| find(program).unwrap_or_else(|| program.into())));
    }
    Err(not_installed(&missing, "").into())
}

/// Checks the requirements for building modules.
pub(crate) fn require_modules() -> Result {
    require_all(&MODULES, "")
}

/// Checks the requirements for building a kernel and its modules.
pub(crate) fn require_build() -> Result {
    require_all(&[MODULES.as_slice(), &BUILD].concat(), " --build")
}

/// Checks programs, and files by their paths.
fn require_all(what: &[&str], flag: &str) -> Result {
    let there =
        |what: &str| if what.starts_with('/') { Path::new(what).exists() } else { find(what).is_some() };
    let missing: Vec<&str> = what.iter().copied().filter(|what| !there(what)).collect();
    if missing.is_empty() { Ok(()) } else { Err(not_installed(&missing, flag).into()) }
}

/// Checks the requirements for building programs for 64-bit ARM, and returns the linker.
pub(crate) fn require_arm64() -> Result<PathBuf> {
    require_all(&ARM64[1..], "")?;
    let [gcc] = require(["aarch64-linux-gnu-gcc"])?;
    Ok(gcc)
}

/// Names the packages, and the command that installs them.
fn not_installed(missing: &[&str], flag: &str) -> String {
    let flag = if missing.iter().any(|what| ARM64.contains(what)) { " --arm64" } else { flag };
    let packages: Vec<&str> = missing.iter().map(|what| package(what).unwrap_or(what)).collect();
    format!(
        "not installed: {}\n`bash lab/packages.sh{flag}` installs what the lab needs; or, as root: apt-get install {}",
        missing.join(", "),
        packages.join(" ")
    )
}

/// Returns the package that contains `program`, from the script's list.
fn package(program: &str) -> Option<&'static str> {
    let list = SCRIPT.lines().skip_while(|line| *line != "# begin").take_while(|line| *line != "# end");
    list.filter_map(|line| line.trim().trim_matches('"').split_once(' '))
        .find_map(|(found, package)| (found == program).then_some(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_package_of_program() {
        assert_eq!(package(QEMU), Some("qemu-system-x86"));
        assert_eq!(package("xz"), Some("xz-utils"));
        assert_eq!(package("/usr/include/gelf.h"), Some("libelf-dev"));
        assert_eq!(package("teapot"), None);
    }

    #[test]
    fn has_package_of_every_build_tool() {
        for tool in MODULES.into_iter().chain(BUILD) {
            assert!(package(tool).is_some(), "{tool}");
        }
        assert!(not_installed(&["pahole"], " --build").contains("packages.sh --build` installs"));
    }

    #[test]
    fn has_package_of_every_arm_tool() {
        for tool in ARM64 {
            assert!(package(tool).is_some(), "{tool}");
        }
        assert!(not_installed(&["qemu-system-aarch64"], "").contains("packages.sh --arm64` installs"));
        // The compiler alone cannot link: Debian only recommends the C library for it.
        assert_eq!(package("/usr/aarch64-linux-gnu/lib/crt1.o"), Some("libc6-dev-arm64-cross"));
    }

    #[test]
    fn error_names_missing_tool_and_package() {
        assert_eq!(require(["sh"]).unwrap()[0].file_name().unwrap(), "sh");
        let error = require(["sh", "no-such-teapot"]).unwrap_err().to_string();
        assert!(error.contains("not installed: no-such-teapot\n"), "{error}");
        assert!(error.contains("lab/packages.sh"), "{error}");
    }
}
