//! `cargo xtask bare bench`: the benchmark of `punctual-kernel` in QEMU, in the format of `punctual
//! bench`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::board::Board;
use super::test::TIME_LIMIT;
use crate::Result;
use crate::process::End;

/// The program in programs/src/bin.
const PROGRAM: &str = "kernel_bench";

/// Runs the benchmark on counted time and writes its output.
pub(super) fn run(board: Board, output: &Path) -> Result {
    let (program, machine) = super::prepare(board, PROGRAM)?;
    let outcome = machine.run_counted(&program.emulator, None, TIME_LIMIT)?;
    if outcome.end != End::Exited(0) {
        return Err(format!("{PROGRAM}: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr).into());
    }
    check(&outcome.stdout)?;
    fs::write(output, outcome.stdout.replace('\r', ""))
        .map_err(|error| format!("{}: {error}", output.display()))?;
    println!("written: {}", output.display());
    Ok(())
}

/// Requires every row to have the requested number of samples or a reason for having none, and
/// every rule to hold.
pub(super) fn check(printed: &str) -> Result {
    let run: Value = serde_json::from_str(printed).map_err(|error| format!("no JSON: {error}\n{printed}"))?;
    let (mut rows, mut checks) = (0, 0);
    for suite in run["suites"].as_array().ok_or("there are no suites")? {
        for row in suite["rows"].as_array().ok_or("there are no rows")? {
            rows += 1;
            let is_measured = row["figures"]["samples"] == run["settings"]["samples"];
            let says_why =
                row["figures"].is_null() && row["why"].as_array().is_some_and(|why| !why.is_empty());
            if !is_measured && !says_why {
                return Err(format!("{} has other samples: {}", row["id"], row["figures"]["samples"]).into());
            }
        }
        for check in suite["checks"].as_array().ok_or("there are no checks")? {
            checks += 1;
            if check["verdict"] != "passed" {
                return Err(
                    format!("{}: {}, not {}", check["id"], check["observed"], check["expected"]).into()
                );
            }
        }
    }
    if rows == 0 || checks == 0 {
        return Err(format!("{rows} rows and {checks} checks").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"settings": {"samples": 2}, "suites": [{
        "rows": [{"id": "a", "figures": {"samples": 2}, "why": []}, {"id": "b", "figures": null, "why": ["no pin"]}],
        "checks": [{"id": "c", "verdict": "passed", "expected": "x", "observed": "x"}]}]}"#;

    #[test]
    fn accepts_whole_run_that_keeps_the_rules() {
        check(RUN).unwrap();
    }

    #[test]
    fn refuses_broken_rule_and_missing_samples() {
        let wrong = [
            RUN.replace("passed", "failed"),
            RUN.replace(r#""figures": {"samples": 2}"#, r#""figures": {"samples": 1}"#),
            RUN.replace(r#"["no pin"]"#, "[]"),
            RUN.replace(r#"{"id": "c", "verdict": "passed", "expected": "x", "observed": "x"}"#, ""),
            RUN.replace('}', ""),
        ];
        for run in wrong {
            assert!(check(&run).is_err(), "{run}");
        }
    }
}
