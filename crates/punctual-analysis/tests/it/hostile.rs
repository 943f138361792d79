//! Hostile input: seeded mutations of real files, through the fuzz entry points.

use std::fs;
use std::path::Path;

use crate::support::Random;

#[path = "../../fuzz/entry.rs"]
mod entry;

/// Number of mutations of each input.
const MUTATIONS: u32 = 500;

/// Replacements for a value.
const VALUES: [&str; 12] = [
    "0",
    "-1",
    "1.5",
    "null",
    "18446744073709551615",
    "18446744073709551616",
    "\"0ns\"",
    "\"31622400s\"",
    "\"\"",
    "[]",
    "{}",
    "true",
];

fn mutated(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=random.within(0, 2) {
        let last = bytes.len() as u64;
        let at = random.within(0, last) as usize;
        let end = (at + random.within(0, 40) as usize).min(bytes.len());
        match random.within(0, 4) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            2 => bytes.insert(at, random.within(0, 127) as u8),
            3 => bytes.truncate(at),
            // A value ends at a comma, a brace or the end of its line.
            _ => {
                let Some(from) = bytes[at..].iter().position(|byte| b":=".contains(byte)) else { continue };
                let from = at + from + 1;
                let to = bytes[from..].iter().position(|byte| b",}]\n".contains(byte));
                let to = to.map_or(bytes.len(), |to| from + to);
                let value = VALUES[random.within(0, VALUES.len() as u64 - 1) as usize];
                bytes.splice(from..to, value.bytes());
            }
        }
    }
    bytes
}

fn attack(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "there is no corpus in {}", path.display());
    let mut random = Random::new(1);
    for path in paths {
        let input = fs::read(path).unwrap();
        entry::run(name, &input);
        (0..MUTATIONS).for_each(|_| entry::run(name, &mutated(&mut random, &input)));
    }
}

#[test]
fn accepts_or_rejects_any_task_set() {
    attack("taskset");
}

#[test]
fn accepts_or_rejects_any_model_and_profile() {
    attack("app");
}
