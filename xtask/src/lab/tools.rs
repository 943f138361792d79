//! The programs of the host that the lab uses, and the packages they are in.

use std::env;
use std::path::{Path, PathBuf};

use crate::Result;

/// Installs the packages, and is the one list of them.
const SCRIPT: &str = include_str!("../../../lab/packages.sh");

pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Where `program` is, in the directories that root searches too: some systems keep tools out of a user's path.
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

/// Where each of `programs` is; the error names every package that is missing, and the command that installs them.
pub(crate) fn require<const N: usize>(programs: [&str; N]) -> Result<[PathBuf; N]> {
    let missing: Vec<&str> = programs.into_iter().filter(|program| find(program).is_none()).collect();
    if missing.is_empty() {
        return Ok(programs.map(|program| find(program).unwrap_or_else(|| program.into())));
    }
    let packages: Vec<&str> = missing.iter().map(|program| package(program).unwrap_or(program)).collect();
    Err(format!(
        "not installed: {}\n`bash lab/packages.sh` installs what the lab needs; or, as root: apt-get install {}",
        missing.join(", "),
        packages.join(" ")
    )
    .into())
}

/// The package that holds `program`, from the script's list.
fn package(program: &str) -> Option<&'static str> {
    let list = SCRIPT.lines().skip_while(|line| *line != "# begin").take_while(|line| *line != "# end");
    list.filter_map(|line| line.trim().trim_matches('"').split_once(' '))
        .find_map(|(found, package)| (found == program).then_some(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_package_of_a_program() {
        assert_eq!(package(QEMU), Some("qemu-system-x86"));
        assert_eq!(package("xz"), Some("xz-utils"));
        assert_eq!(package("teapot"), None);
    }

    #[test]
    fn says_what_is_missing_and_how_to_install_it() {
        assert_eq!(require(["sh"]).unwrap()[0].file_name().unwrap(), "sh");
        let error = require(["sh", "no-such-teapot"]).unwrap_err().to_string();
        assert!(error.contains("not installed: no-such-teapot\n"), "{error}");
        assert!(error.contains("lab/packages.sh"), "{error}");
    }
}
