//! The fuzzed inputs: one function for each kind, for `cargo xtask fuzz machines` and for the test
//! `hostile`, which runs without the fuzzer. The corpus of `machine` is `tests/machines`.

use punctual_isolate::cpus::Cpus;
use punctual_isolate::doctor::{App, Scene, examine, json, text};
use punctual_isolate::facts::Machine;
use punctual_isolate::isolate::{Account, Plan, boot};
use punctual_isolate::tree::Tree;

/// Passes an input to the target with this name.
pub(crate) fn run(target: &str, data: &[u8]) {
    match target {
        "machine" => machine(data),
        "words" => words(data),
        _ => unreachable!("the manifest has no target `{target}`"),
    }
}

/// Reads arbitrary bytes as the files of a machine: no output contains terminal control characters.
fn machine(data: &[u8]) {
    let machine = Machine::read(Tree::parse(&String::from_utf8_lossy(data)).recorded());
    let scene = Scene::new(&machine);
    let report = examine(&scene);
    let mut printed = vec![text::text(&scene, &report, 100), json::json(&scene, &report)];
    printed.push(machine.tree.recording());
    if let Ok(plan) = Plan::new(&machine, &scene.cpus) {
        printed.push(plan.text());
    }
    printed.push(boot::text(&machine, &scene.cpus));
    let rows = Account::read(&machine.tree).since(&Account::default(), &scene.cpus, &Cpus::default());
    printed.extend(rows.into_iter().map(|row| row.name));
    let is_active = |c: char| {
        !matches!(c, '\n' | '\t')
            && (c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    for text in printed {
        assert!(!text.contains(is_active), "{text:?}");
    }
}

/// Reads arbitrary bytes as the model of an app, and as lists and masks of CPUs, which must
/// round-trip.
fn words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = App::of_model(&text);
    let _ = Cpus::checked(&text);
    let (list, mask) = (Cpus::of_list(&text), Cpus::of_mask(&text));
    assert_eq!(Cpus::of_list(&list.to_string()), list);
    assert_eq!(Cpus::of_mask(&mask.mask()), mask);
}
