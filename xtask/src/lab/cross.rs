//! Building for the processor of another machine.

use std::env;
use std::process::Command;

use super::tools;
use crate::{Result, cargo};

/// A cargo command that builds for a machine of which `uname -m` says `architecture`.
pub(crate) fn cargo(architecture: &str) -> Result<Command> {
    let mut command = cargo::command();
    if architecture == env::consts::ARCH {
        return Ok(command);
    }
    let target = target(architecture)?;
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    if env::var_os(&linker).is_none() {
        let [gcc] = tools::require(["aarch64-linux-gnu-gcc"])?;
        command.env(linker, gcc);
    }
    command.env("CARGO_BUILD_TARGET", target);
    Ok(command)
}

/// What rustc calls it.
fn target(architecture: &str) -> Result<&'static str> {
    match architecture {
        "aarch64" => Ok("aarch64-unknown-linux-gnu"),
        other => Err(format!("the lab builds for x86_64 and aarch64, not for {other}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_processor_needs_nothing() {
        let command = cargo(env::consts::ARCH).unwrap();
        assert!(command.get_envs().all(|(name, _)| name != "CARGO_BUILD_TARGET"));
        assert!(cargo("m68k").unwrap_err().to_string().contains("not for m68k"));
    }
}
