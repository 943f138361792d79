//! `punctual top`: watches running apps.

pub(crate) mod args;
mod canvas;
mod chosen;
mod columns;
mod figures;
pub(crate) mod find;
mod http;
mod json;
mod keys;
mod levels;
pub(crate) mod memory;
mod next_miss;
mod prometheus;
mod screen;
mod terminal;
mod text;
mod view;

use std::io::{self, IsTerminal};
use std::time::Instant;

use self::args::Top;
use self::chosen::Chosen;
use self::figures::{arranged, rows};
use crate::output::{is_over, message, note};
use crate::status::GOOD;

pub(crate) fn run(arguments: &Top) -> Result<u8, String> {
    let ended = match arguments.prometheus {
        Some(address) => prometheus::serve(address, arguments.app.as_deref()),
        None if arguments.json.json.is_some() || !io::stdout().is_terminal() => lines(arguments),
        None => terminal::run(arguments),
    };
    ended.map(|()| GOOD)
}

/// Prints tables or lines of JSON, until there is no reader anymore.
fn lines(arguments: &Top) -> Result<(), String> {
    let mut sink = arguments.json.lines()?;
    let mut chosen = Chosen::new(arguments.app.clone());
    // There has to be an app at the start; later it may be absent for a while.
    let mut snapshot = Some(chosen.snapshot()?);
    let mut next = Instant::now();
    let mut last_message = String::new();
    for number in 1.. {
        if let (Some(snapshot), Some(memory)) = (snapshot.take(), chosen.memory()) {
            let rows = arranged(rows(&memory.about, &snapshot, chosen.since()), arguments.sort, "");
            let shown = match arguments.json.json.is_some() {
                true => json::line(memory, &snapshot, &rows),
                false => text::table(memory, &snapshot, &rows),
            };
            match arguments.json.file() {
                Some(path) => {
                    sink.write(&shown).map_err(|error| format!("--json {}: {error}", path.display()))?
                }
                None => note(sink.write(&shown)),
            }
            chosen.since_mut().next(snapshot);
        }
        if is_over() || arguments.count.is_some_and(|count| number >= count) {
            break;
        }
        // A grid, so that the lines of a slow reader do not accumulate a delay.
        next = (next + arguments.every).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        match chosen.snapshot() {
            Ok(now) => snapshot = Some(now),
            // Printed once, regardless of its duration.
            Err(why) if why != last_message => {
                message!("{why}");
                last_message = why;
            }
            Err(_) => {}
        }
    }
    Ok(())
}
