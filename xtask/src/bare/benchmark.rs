//! `cargo xtask bare bench`: the benchmark of `punctual-kernel` in QEMU, in the format of `punctual
//! bench`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::board::Board;
use super::load::crc32;
use super::test::TIME_LIMIT;
use crate::Result;
use crate::process::{End, Outcome};

/// The program in programs/src/bin.
const PROGRAM: &str = "kernel_bench";

/// Runs the benchmark on counted time and writes its output.
pub(super) fn run(board: Board, output: &Path) -> Result {
    let (program, machine) = super::prepare(board, PROGRAM)?;
    let json = checked(&machine.run_counted(&program.emulator, None, TIME_LIMIT)?)?;
    fs::write(output, json).map_err(|error| format!("{}: {error}", output.display()))?;
    println!("written: {}", output.display());
    Ok(())
}

/// Returns the JSON that the benchmark has printed, if it passes its checks.
pub(super) fn checked(outcome: &Outcome) -> Result<String> {
    let Outcome { end, stdout, stderr } = outcome;
    if *end != End::Exited(0) {
        return Err(format!("{end}\n{stdout}{stderr}").into());
    }
    let json = extract(stdout)?;
    check(&json)?;
    Ok(json)
}

/// Returns the JSON in the output of a board, and checks it against the line with its checksum.
/// Other output, for example of a boot loader, may precede and follow it.
fn extract(printed: &str) -> Result<String> {
    const BEGINNING: &str = "{\"format\": \"punctual-bench\"";
    const CHECKSUM: &str = "\nchecksum: ";
    let printed = printed.replace('\r', "");
    let begin = printed.find(BEGINNING).ok_or("the output contains no benchmark")?;
    let end = printed[begin..].find(CHECKSUM).ok_or("the output ends before its checksum")?;
    let (json, checksum) = printed[begin..].split_at(end + 1);
    let is = format!("checksum: {} bytes, CRC-32 {:08x}", json.len(), crc32(json.as_bytes()));
    match checksum.lines().next() {
        Some(line) if line == is => Ok(json.to_owned()),
        line => Err(format!("bytes were lost or changed: {is}, but the board printed {line:?}").into()),
    }
}

/// Requires every row to have the requested number of samples or a reason for having none, and
/// every rule to hold.
fn check(printed: &str) -> Result {
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
            let is_excused = check["verdict"] == "not-meaningful"
                && check["why"].as_array().is_some_and(|why| !why.is_empty());
            if check["verdict"] != "passed" && !is_excused {
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

    fn printed(json: &str) -> String {
        format!("{json}checksum: {} bytes, CRC-32 {:08x}\n", json.len(), crc32(json.as_bytes()))
    }

    #[test]
    fn extracts_a_run_from_the_output_of_a_board() {
        let json = "{\"format\": \"punctual-bench\",\n\"a\": 1}\n";
        let output = format!("punctual-boot on a board\n{}goodbye\n", printed(json)).replace('\n', "\r\n");
        assert_eq!(extract(&output).unwrap(), json);
        let lost = output.replacen("\"a\"", "\"\"", 1);
        assert!(extract(&lost).unwrap_err().to_string().starts_with("bytes were lost or changed"));
        assert!(extract(&output[..output.len() / 2]).unwrap_err().to_string().contains("checksum"));
        assert!(extract("nothing").unwrap_err().to_string().contains("no benchmark"));
    }

    #[test]
    fn accepts_complete_run_that_passes_its_checks() {
        check(RUN).unwrap();
    }

    #[test]
    fn rejects_broken_rule_and_missing_samples() {
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
