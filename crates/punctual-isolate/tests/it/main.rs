//! The findings on the machines of `tests/machines`: the text must match the expected one exactly,
//! the JSON must follow its schema, and neither contains terminal control characters.
//!
//! The first line of a machine states its origin. `punctual doctor --record FILE` recorded some; of
//! their threads and interrupts, only those that affect the findings are left. The constructed ones
//! follow the kernel's documentation and sources, with plausible values.
//!
//! `BLESS=1 cargo test -p punctual-isolate --test it` overwrites the expected findings.

mod hostile;

use std::fs;
use std::path::{Path, PathBuf};

use punctual_isolate::doctor::{Report, Scene, checks, examine, json, text};
use punctual_isolate::facts::Machine;
use punctual_isolate::tree::Tree;
use xtask_support::schema::Schema;
use xtask_support::{cargo, golden};

/// Width of the expected texts.
const WIDTH: usize = 100;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// Returns the names of the recorded machines.
fn names() -> Vec<String> {
    let entries = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let machines = entries.filter(|path| path.extension().is_some_and(|ending| ending == "txt"));
    let mut names: Vec<String> =
        machines.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn load(name: &str) -> Machine {
    let text = fs::read_to_string(directory().join(name).with_extension("txt")).unwrap();
    assert!(
        ["Recorded: ", "Constructed: "].iter().any(|start| text.starts_with(start)),
        "{name} does not state its origin"
    );
    Machine::read(Tree::parse(&text))
}

fn examined(machine: &Machine, check: impl FnOnce(&Scene, &Report)) {
    let scene = Scene::new(machine);
    check(&scene, &examine(&scene));
}

#[test]
fn finds_expected_findings_on_every_machine() {
    let names = names();
    assert!(names.len() >= 10, "{names:?}");
    let mut differences = Vec::new();
    for name in names {
        let file = directory().join(&name).with_extension("expected");
        examined(&load(&name), |scene, report| {
            differences.extend(golden::difference(&file, &text::text(scene, report, WIDTH)));
        });
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn finds_nothing_on_prepared_machine() {
    examined(&load("prepared"), |_, report| {
        assert!(report.is_fit() && report.findings.is_empty() && report.unknown.is_empty());
    });
}

#[test]
fn lines_of_checks_fit_a_small_terminal() {
    for name in names() {
        examined(&load(&name), |_, report| {
            let text = text::checks(report, 80);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}: {text}");
            assert_eq!(report.outcomes.len(), checks().count(), "{name}");
        });
    }
}

#[test]
fn json_matches_schema() {
    let schema = Schema::new(include_str!("../../../../docs/doctor-schema.json"));
    for name in names() {
        examined(&load(&name), |scene, report| {
            let document = serde_json::from_str(&json::json(scene, report)).unwrap();
            assert_eq!(schema.violations(&document), [""; 0], "{name}");
        });
    }
}

#[test]
fn prints_no_terminal_escapes() {
    for name in names() {
        examined(&load(&name), |scene, report| {
            let is_active = |c: char| {
                c != '\n'
                    && (c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
            };
            for printed in [text::text(scene, report, WIDTH), json::json(scene, report)] {
                assert!(!printed.contains(is_active), "{name}: {printed:?}");
            }
        });
    }
}

#[test]
fn recording_of_recording_is_identical() {
    for name in names() {
        let text = fs::read_to_string(directory().join(&name).with_extension("txt")).unwrap();
        let machine = Machine::read(Tree::parse(&text).recorded());
        examined(&machine, |scene, report| {
            let again = Machine::read(Tree::parse(&machine.tree.recording()));
            examined(&again, |other, reported| {
                assert_eq!(text::text(scene, report, WIDTH), text::text(other, reported, WIDTH))
            });
        });
    }
}

#[test]
fn page_of_checks_is_current() {
    let rows = checks().map(|(name, examines)| [format!("`{name}`"), examines.to_owned()]);
    let page = cargo::root().join("docs/book/src/guides/machine.md");
    assert_eq!(golden::table_difference(&page, &["check", "examines"], rows), None);
}
