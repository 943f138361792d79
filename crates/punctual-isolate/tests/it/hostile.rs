//! Files with any content are read without a panic and in bounded time, and no output contains
//! terminal control characters: the machines of `tests/machines`, changed at random with a fixed
//! seed.

#[path = "../../fuzz/entry.rs"]
mod entry;

use std::fs;
use std::path::Path;

/// The number of changes of each machine.
const ROUNDS: usize = 12;

/// xorshift64
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Inputs that tend to break parsers.
const PIECES: [&str; 16] = [
    "18446744073709551615",
    "-1",
    "0-99999999999",
    "\u{1b}[2J",
    "\u{202e}",
    "\0",
    "==> /proc/x <==",
    "\\u{1b}",
    "\\u{d800}",
    ")",
    "(",
    ":",
    "ffffffff,ffffffff",
    "999999999999999999999999",
    "",
    "\n\n",
];

fn changed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(40) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.below(256) as u8,
            1 => drop(bytes.drain(at..(at + random.below(30)).min(bytes.len()))),
            2 => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
            _ => {
                let piece = bytes[at..(at + random.below(200)).min(bytes.len())].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'=');
        }
    }
    bytes
}

#[test]
fn never_panics_on_random_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for path in paths {
        let bytes = fs::read(path).unwrap();
        for _ in 0..ROUNDS {
            entry::run("machine", &changed(&bytes, &mut random));
        }
    }
}

#[test]
fn never_panics_on_random_models_and_lists() {
    let model = r#"{ "schema": "punctual-model/1", "app": "a", "partitions": [ { "executor": "global", "cpu": 3 } ],
        "tasks": [ { "name": "t", "kind": "bound", "level": 4 } ] }"#;
    let mut random = Random(7);
    for _ in 0..500 {
        entry::run("words", &changed(model.as_bytes(), &mut random));
    }
}
