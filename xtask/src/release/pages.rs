//! Screenshots of the pages that users see, for a person to look at before a release.

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask_support::browser;

use crate::process::{End, TOOL_LIMIT};
use crate::scratch::Scratch;
use crate::{Result, cargo, process};

/// Each page with the command that writes it; `PUNCTUAL`, `GIMBAL` and `PAGE` are placeholders.
const PAGES: [(&str, &str); 5] = [
    ("gimbal", "GIMBAL --seconds 3 --report PAGE"),
    ("bench", "PUNCTUAL bench --quick --html PAGE"),
    ("trace", "PUNCTUAL trace report docs/threads.dat --html PAGE"),
    ("rta", "PUNCTUAL rta docs/tasks.toml --html PAGE"),
    ("check", "PUNCTUAL check --html PAGE -- GIMBAL --seconds 3"),
];

/// Widths of the window, in pixels.
const WIDTHS: [u32; 2] = [1280, 400];
/// Height of the window, in pixels; enough for the first screens of the longest page.
const HEIGHT: u32 = 6000;
/// Color schemes, with the browser's number of each.
const SCHEMES: [(&str, u32); 2] = [("dark", 0), ("light", 1)];

/// Writes all pages and their screenshots into `directory`, with the program `punctual`.
pub(super) fn run(directory: &Path, punctual: &Path) -> Result {
    let Some(program) = browser::find() else {
        println!("\n*** SKIPPED: NO PAGE WAS DRAWN. Install the package `chromium` ***\n");
        return Ok(());
    };
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory)?;
    process::succeed(cargo::command().args(["build", "--locked", "--quiet", "--release", "-p", "gimbal"]))?;
    let gimbal = cargo::target_dir().join("release/gimbal");
    for (name, command) in PAGES {
        let page = directory.join(name).with_extension("html");
        let word = |word| match word {
            "PUNCTUAL" => punctual.to_owned(),
            "GIMBAL" => gimbal.clone(),
            "PAGE" => page.clone(),
            word => word.into(),
        };
        let words: Vec<_> = command.split(' ').map(word).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(cargo::root());
        // A finding, such as a miss on a busy machine, is a page as well.
        let outcome = process::capture(&mut command, TOOL_LIMIT)?;
        if !matches!(outcome.end, End::Exited(0..=2)) || !page.exists() {
            return Err(format!("{} from {command:?}: {}", outcome.end, outcome.stderr).into());
        }
        for (width, (scheme, number)) in WIDTHS.iter().flat_map(|width| SCHEMES.map(|scheme| (width, scheme)))
        {
            let picture = directory.join(format!("{name}-{width}-{scheme}.png"));
            draw(program, &page, &picture, *width, number)?;
        }
    }
    println!(
        "pages: look at the {} pictures in {}",
        PAGES.len() * WIDTHS.len() * SCHEMES.len(),
        directory.display()
    );
    Ok(())
}

/// Makes a picture of `page` in a window of this width.
fn draw(program: &str, page: &Path, picture: &Path, width: u32, scheme: u32) -> Result {
    let scratch = Scratch::new("browser")?;
    let mut command = browser::command(program, scratch.path());
    command
        .arg("--hide-scrollbars")
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={width},{HEIGHT}"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()));
    let outcome = process::capture(&mut command, TOOL_LIMIT)?;
    let png = fs::read(picture).unwrap_or_default();
    // The header: a signature, and the width in big-endian order.
    if png.get(16..20) != Some(&width.to_be_bytes()) {
        return Err(format!("{program} drew no picture of {}: {}", page.display(), outcome.stderr).into());
    }
    Ok(())
}
