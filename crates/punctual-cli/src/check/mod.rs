//! `punctual check`: one command, one verdict. Composes the doctor, the measurements of an app and
//! response-time analysis.

pub(crate) mod args;
mod json;
mod measure;
mod page;
mod text;
mod verdict;

use std::path::Path;
use std::process::ExitCode;

use punctual_isolate::doctor::{self, Scene, examine};
use punctual_report::format::format_nanos;

use self::args::Check;
use self::measure::Measured;
use self::verdict::{Answer, Verdict};
use crate::output::{print, say};

/// Standard output, as a file.
const STANDARD_OUTPUT: &str = "-";

pub(crate) fn run(arguments: &Check) -> ExitCode {
    match check(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            say!("error: {message}");
            ExitCode::from(Answer::Unknown.status())
        }
    }
}

/// Returns the exit status, or the reason why nothing could be checked.
fn check(arguments: &Check) -> Result<u8, String> {
    let json = arguments.json.as_deref();
    let json_file = json.filter(|path| *path != Path::new(STANDARD_OUTPUT));
    let files = [("--json", json_file), ("--html", arguments.html.as_deref())];
    for (flag, path) in files {
        if let Some(path) = path {
            punctual_files::check(path).map_err(|error| format!("{flag} {}: {error}", path.display()))?;
        }
    }
    let Measured { subject, machine, app } = measure::measure(arguments)?;
    let scene = machine.as_ref().map(crate::doctor::scene).transpose()?;
    let scene = match (scene, app) {
        (Some(scene), Some(app)) => Some(scene.for_app(app)?),
        (scene, _) => scene,
    };
    let examined = scene.as_ref().map(examine);
    let verdict = Verdict::new(subject, examined.as_ref());
    let lines = Lines::new(&verdict, scene.as_ref());
    if json == Some(Path::new(STANDARD_OUTPUT)) {
        print(&format!("{}\n", json::json(&verdict, scene.as_ref())));
    } else {
        print(&text::text(&verdict, &lines));
    }
    let mut code = verdict.answer.status();
    let mut write = |flag: &str, path: Option<&Path>, content: &dyn Fn() -> String| {
        let Some(path) = path else { return };
        if let Err(error) = punctual_files::write(path, content().as_bytes()) {
            say!("error: {flag} {}: {error}", path.display());
            code = Answer::Unknown.status();
        }
    };
    write("--json", json_file, &|| json::json(&verdict, scene.as_ref()) + "\n");
    write("--html", arguments.html.as_deref(), &|| page::page(&verdict, &lines));
    Ok(code)
}

/// The first lines of text and page.
struct Lines {
    /// The answer and its reason.
    answer: String,
    /// The subject and the machine.
    about: String,
}

impl Lines {
    fn new(verdict: &Verdict, scene: Option<&Scene>) -> Self {
        let subject = &verdict.subject;
        let mut about = vec![subject.name.clone()];
        if let Some(length) = subject.length {
            about.push(format_nanos(length as f64));
        }
        about.extend(scene.map(doctor::text::machine));
        let answer = format!("{}: {}", verdict.answer.as_str(), verdict.reason);
        Self { answer, about: about.join("; ") }
    }
}
