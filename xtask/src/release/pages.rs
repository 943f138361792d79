//! Checks the layout of the pages that users see, and draws them for a person to look at before a
//! release.

use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_report::escape::Escaped;
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

/// A script that lists the faults of a layout.
const LAYOUT: &str = include_str!("layout.js");

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
        for width in WIDTHS {
            check_layout(program, &page, width)?;
            for (scheme, number) in SCHEMES {
                let picture = directory.join(format!("{name}-{width}-{scheme}.png"));
                draw(program, &page, &picture, width, number)?;
            }
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

/// Fails if a text of `page` is too small, clipped or covered in a window of this width.
fn check_layout(program: &str, page: &Path, width: u32) -> Result {
    let faults = faults(program, &fs::read_to_string(page)?, width)?;
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("{} at {width} px:\n{}", page.display(), faults.join("\n")).into())
}

fn faults(program: &str, page: &str, width: u32) -> Result<Vec<String>> {
    let scratch = Scratch::new("layout")?;
    let file = scratch.path().join("page.html");
    // In a frame: a window is at least 500 px wide.
    let content = Escaped(&format!("{page}<script>{{{LAYOUT}}}</script>")).to_string();
    let frame = format!("style=\"border: 0; width: {width}px; height: {HEIGHT}px\"");
    fs::write(&file, format!("<!DOCTYPE html><body><iframe {frame} srcdoc=\"{content}\"></iframe></body>"))?;
    let mut command = browser::command(program, scratch.path());
    command.args(["--hide-scrollbars", "--dump-dom"]).arg(format!("file://{}", file.display()));
    let outcome = process::capture(&mut command, TOOL_LIMIT)?;
    let body = outcome.stdout.split_once("<body>").map_or("", |(_, rest)| rest);
    let mut lines = body.lines().map(str::to_owned).take_while(|line| !line.starts_with("</body>"));
    match lines.next() {
        Some(line) if line == format!("width {width}") => Ok(lines.collect()),
        line => {
            Err(format!("{program} has not examined a page of {width} px: {line:?} {}", outcome.stderr)
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_small_clipped_and_covered_text() {
        let Some(program) = browser::find() else {
            return test_skip::skip(test_skip::Need::Tool("chromium"), "the layout of pages");
        };
        let page = |body: &str| {
            format!(
                "<!DOCTYPE html><style>body {{ margin: 0; font: 16px sans-serif }}</style><body><main>{body}</main></body>"
            )
        };
        let text = |x: u32, size: u32, text: &str| {
            format!("<text x=\"{x}\" y=\"20\" style=\"font-size: {size}px\">{text}</text>")
        };
        let svg = |texts: &str| page(&format!("<svg width=\"200\" height=\"40\">{texts}</svg>"));
        let table = |name: &str| {
            page(&format!(
                "<div style=\"overflow-x: auto\"><table style=\"white-space: pre\"><tbody><tr>\
                 <th style=\"position: sticky; left: 0\">{name}</th><td>{:300}</td></table></div>",
                1
            ))
        };
        for (page, expected) in [
            (page("fine"), ""),
            (svg(&text(10, 12, "fine")), ""),
            (svg(&text(10, 10, "small")), "text of 10.0 px: small"),
            (svg(&text(190, 12, "outside")), "clipped in a drawing: outside"),
            (svg(&[text(10, 12, "one"), text(12, 12, "two")].concat()), "one text over another: one, two"),
            (page("a `b`"), "backtick: a `b`"),
            (
                page("<p style=\"width: 20px; overflow: hidden; white-space: pre\">hid den</p>"),
                "clipped: hid den",
            ),
            (page("<p style=\"width: 900px\">wide</p>"), "the page is 900 px wide"),
            (table("name"), ""),
            (
                table("a name as wide as the page is here"),
                "covers the values: a name as wide as the page is here",
            ),
        ] {
            assert_eq!(faults(program, &page, 400).unwrap().join("\n"), expected);
        }
    }
}
