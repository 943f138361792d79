//! Downloads a kernel package through apt, without installing it and without changing the system's
//! state.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask_support::Result;
use xtask_support::process::{self, TOOL_LIMIT};

use super::package::Flavour;
use crate::arch::Arch;
use crate::tools;
use crate::trouble::Interrupt;
use crate::workdir::{self, at};

/// The end of messages about small packages.
const NEEDS_NETWORK: &str = "Their first use needs a network; later uses work offline";

/// The package lists of apt.
enum Lists {
    /// Those of the system's last `apt-get update`.
    System,
    /// Those of our own update, in this directory: it needs no root, and the system's lists may be
    /// old or empty, and lack other processors.
    Own(PathBuf, Arch),
}

/// Downloads the newest package of `flavour` into `directory`; returns its name and path.
pub(crate) fn download(
    flavour: Flavour,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<(String, PathBuf)> {
    tools::require(["apt-get", "apt-cache"])?;
    let needs = first_use(flavour);
    with_lists(flavour.arch(), directory, &needs, interrupt, |lists| {
        let package = newest(lists, flavour)?.ok_or_else(|| {
            format!(
                "apt has no package {} of Linux 6.12 or newer. Debian 13 has one in its main archive, Debian 12 in \
                 bookworm-security and bookworm-backports: add one of these to /etc/apt/sources.list.d",
                flavour.pattern()
            )
        })?;
        let debs = fetch_by(lists, &[&package], &needs, directory, interrupt)?;
        Ok((package, debs.into_iter().next().ok_or("apt-get has downloaded no package")?))
    })
}

/// Calls `get` with the system's package lists and, if it fails, with new ones.
fn with_lists<T>(
    arch: Arch,
    directory: &Path,
    needs: &str,
    interrupt: &Interrupt,
    get: impl Fn(&Lists) -> Result<T>,
) -> Result<T> {
    let got = match arch {
        Arch::Amd64 => get(&Lists::System),
        Arch::Arm64 => Err("the system's package lists are for another processor".into()),
    };
    got.or_else(|error| {
        interrupt.check()?;
        eprintln!("lab: {error}; trying with new package lists");
        get(&update(&directory.join("apt"), arch, needs, interrupt)?)
    })
}

/// Downloads `packages` by name into `directory`; returns their paths.
pub(crate) fn fetch(
    packages: &[&str],
    arch: Arch,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<Vec<PathBuf>> {
    tools::require(["apt-get"])?;
    let fetch = |lists: &Lists| fetch_by(lists, packages, NEEDS_NETWORK, directory, interrupt);
    with_lists(arch, directory, NEEDS_NETWORK, interrupt, fetch)
}

fn fetch_by(
    lists: &Lists,
    packages: &[&str],
    needs: &str,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<Vec<PathBuf>> {
    eprintln!("lab: downloading {}", packages.join(", "));
    let mut command = lists.command("apt-get");
    // The output of the user's command must be alone on stdout.
    command.arg("download").args(packages).current_dir(directory).stdout(io::stderr());
    let status = interrupt.run(&mut command)?;
    if !status.success() {
        return Err(format!("apt-get cannot download {} ({status}). {needs}", packages.join(", ")).into());
    }
    let entries = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    Ok(entries.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
}

/// Returns the version of the package of `flavour` in the system's lists, if any.
pub(crate) fn version(flavour: Flavour) -> Result<Option<String>> {
    let Some(package) = newest(&Lists::System, flavour)? else { return Ok(None) };
    let mut show = Lists::System.command("apt-cache");
    let about = process::stdout(show.args(["show", "--no-all-versions", &package]), TOOL_LIMIT)?;
    let version = about.lines().find_map(|line| line.strip_prefix("Version: "));
    Ok(version.map(|version| version.trim().to_owned()))
}

/// Returns the version of the package in the file `deb`.
pub(crate) fn version_in(deb: &Path) -> Result<String> {
    let [dpkg] = tools::require(["dpkg-deb"])?;
    let mut command = Command::new(dpkg);
    Ok(process::stdout(command.arg("--field").arg(deb).arg("Version"), TOOL_LIMIT)?.trim().to_owned())
}

impl Lists {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(tools::find(program).unwrap_or_else(|| program.into()));
        let mut option = |key: &str, value: &Path| {
            command.arg("-o").arg(format!("{key}={}", value.display()));
        };
        // Root would download as another user, who may lack access to our directory.
        option("APT::Sandbox::User", Path::new("root"));
        option("Acquire::Languages", Path::new("none"));
        if let Self::Own(directory, arch) = self {
            option("Dir::State::lists", &directory.join("lists"));
            option("Dir::Cache", &directory.join("cache"));
            if *arch != Arch::Amd64 {
                option("APT::Architecture", Path::new(arch.debian()));
                option("APT::Architectures", Path::new(arch.debian()));
                // The installed packages are for another processor.
                option("Dir::State::status", Path::new("/dev/null"));
            }
        }
        command.env("LC_ALL", "C");
        command
    }
}

/// Returns the name of the newest package of `flavour`.
fn newest(lists: &Lists, flavour: Flavour) -> Result<Option<String>> {
    let mut search = lists.command("apt-cache");
    let found = process::stdout(search.args(["search", "--names-only", &flavour.pattern()]), TOOL_LIMIT)?;
    Ok(flavour.packages(&found).into_iter().next())
}

/// Downloads new package lists to `directory`.
fn update(directory: &Path, arch: Arch, needs: &str, interrupt: &Interrupt) -> Result<Lists> {
    for part in ["lists/partial", "cache/archives/partial"] {
        let path = directory.join(part);
        fs::create_dir_all(&path).map_err(at(&path))?;
    }
    let lists = Lists::Own(directory.to_owned(), arch);
    interrupt.run(lists.command("apt-get").arg("update").stdout(io::stderr()))?;
    // The exit status is no indication: it is also success without any list, and failure if one of
    // many sources is unavailable.
    let is_list = |name: &str| name.contains("_Packages");
    let got = fs::read_dir(directory.join("lists"))?
        .flatten()
        .any(|entry| is_list(&entry.file_name().to_string_lossy()));
    if got { Ok(lists) } else { Err(format!("apt got no package lists. {needs}").into()) }
}

/// Returns the requirements of the download, for error messages.
fn first_use(flavour: Flavour) -> String {
    format!(
        "The first use of the kernel `{}` needs a network and {} MB of space in {}; later uses work offline",
        flavour.name(),
        flavour.space(),
        workdir::cache().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_own_package_lists_in_own_directory() {
        let command = Lists::Own("/cache/apt".into(), Arch::Amd64).command("apt-cache");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert!(words.iter().any(|word| word == "Dir::State::lists=/cache/apt/lists"), "{words:?}");
        assert!(!format!("{:?}", Lists::System.command("apt-cache")).contains("Dir::State"));
    }
}
