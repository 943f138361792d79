//! `punctual doctor`: examines the machine, prints the findings, and makes reversible changes.

pub(crate) mod args;
mod fix;

use std::io::{self, IsTerminal};
use std::path::Path;

use punctual_isolate::change::{Live, Store};
use punctual_isolate::doctor::{Scene, examine, json, text};
use punctual_isolate::facts::Machine;
use punctual_isolate::tree::Tree;

use self::args::Doctor;
use crate::app;
use crate::output::{self, message, print};
use crate::status::FINDING;
use crate::trace::text::width;

/// Locations of settings and their journals.
struct Place {
    store: Store,
    settings: Live,
}

impl Place {
    fn of(arguments: &Doctor) -> Self {
        match &arguments.root {
            Some(root) => Self { store: Store::at(root.join("run/punctual")), settings: Live::at(root) },
            None => Self { store: Store::system(), settings: Live::system() },
        }
    }
}

pub(crate) fn run(arguments: &Doctor) -> Result<u8, String> {
    let mut place = Place::of(arguments);
    if arguments.undo {
        return fix::undo(&mut place);
    }
    arguments.json.check()?;
    output::check("--record", arguments.record.as_deref())?;
    let app = match arguments.command.as_slice() {
        [] => None,
        command => Some(app::start_declared(command)?),
    };
    // While the app runs, so that its threads are included.
    let machine = Machine::read(tree(arguments)?);
    // Ends the app.
    let app = app.map(|(_, app)| app);
    let scene = scene(&machine)?;
    let scene = match &arguments.cpus {
        Some(cpus) => scene.on(cpus.clone()).map_err(|error| format!("--cpus: {error}"))?,
        None => scene,
    };
    let scene = match app {
        Some(app) => scene.for_app(app)?,
        None => scene,
    };
    let report = examine(&scene);
    let is_colored = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let text = || match text::text(&scene, &report, width()) {
        text if is_colored => colored(&text),
        text => text,
    };
    let is_written = arguments.json.write(text, || json::json(&scene, &report));
    if arguments.all {
        print(&format!("\n{}", text::checks(&report, width())));
    }
    let is_recorded = output::write("--record", arguments.record.as_deref(), || machine.tree.recording());
    if let Some(path) = arguments.record.as_ref().filter(|_| is_recorded) {
        message!("written: {}", path.display());
    }
    if arguments.fix {
        return fix::fix(&report, &mut place);
    }
    Ok(if report.is_fit() && is_written && is_recorded { 0 } else { FINDING })
}

/// Returns the CPUs to examine, unless the machine does not list any.
pub(crate) fn scene(machine: &Machine) -> Result<Scene<'_>, String> {
    if machine.topology.online.is_empty() {
        return Err(
            "cannot list the CPUs: there is no /sys/devices/system/cpu/online; mount /sys, or give a file of \
             --record that contains it"
                .into(),
        );
    }
    Ok(Scene::new(machine))
}

/// Colors the severities at the beginnings of lines.
fn colored(text: &str) -> String {
    const COLORS: [(&str, &str); 4] = [("high", "1;31"), ("medium", "33"), ("low", "36"), ("note", "2")];
    let line = |line: &str| {
        let of_severity = COLORS.iter().find_map(|(severity, color)| {
            let rest = line.strip_prefix(severity).filter(|rest| rest.starts_with("  "))?;
            Some(format!("\u{1b}[{color}m{severity}\u{1b}[0m{rest}"))
        });
        of_severity.unwrap_or_else(|| line.to_owned())
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn tree(arguments: &Doctor) -> Result<Tree, String> {
    let tree = match (&arguments.machine, &arguments.root) {
        (Some(path), _) => saved(path)?,
        (None, Some(root)) => Tree::directory(root),
        (None, None) => Tree::system(),
    };
    Ok(if arguments.record.is_some() { tree.recorded() } else { tree })
}

/// The maximum length of a description of a machine.
const MACHINE_LIMIT: u64 = 64 << 20;

/// Reads the settings that `--record` saved.
pub(crate) fn saved(path: &Path) -> Result<Tree, String> {
    let bytes = punctual_files::read(path, MACHINE_LIMIT)
        .map_err(|error| format!("--machine {}: {error}; give a file of --record", path.display()))?;
    let tree = Tree::parse(&String::from_utf8_lossy(&bytes));
    if tree.is_empty() {
        return Err(format!(
            "--machine {}: it contains no settings; give a file of --record",
            path.display()
        ));
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_severities_only() {
        let text = "high    CPU 1 is busy\n        high load\nlow     a\nhighest\n";
        let expected = "\u{1b}[1;31mhigh\u{1b}[0m    CPU 1 is busy\n        high load\n\u{1b}[36mlow\u{1b}[0m     a\nhighest\n";
        assert_eq!(colored(text), expected);
    }
}
