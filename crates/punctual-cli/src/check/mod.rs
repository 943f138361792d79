//! `punctual check`: one command, one verdict. Composes the doctor, the measurements of an app and
//! response-time analysis.

pub(crate) mod args;
mod json;
mod measure;
mod page;
mod text;
mod verdict;

use std::process::ExitCode;

use punctual_isolate::doctor::{self, Scene, examine};
use punctual_report::format::format_nanos;

use self::args::Check;
use self::measure::Measured;
use self::verdict::{Answer, Verdict};
use crate::output::{self, message};

pub(crate) fn run(arguments: &Check) -> ExitCode {
    match check(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            message!("error: {message}");
            ExitCode::from(Answer::Unknown.status())
        }
    }
}

/// Returns the exit status, or the reason why nothing could be checked.
fn check(arguments: &Check) -> Result<u8, String> {
    arguments.json.check()?;
    output::check("--html", arguments.html.as_deref())?;
    let Measured { subject, machine, app } = measure::measure(arguments)?;
    let scene = machine.as_ref().map(crate::doctor::scene).transpose()?;
    let scene = match (scene, app) {
        (Some(scene), Some(app)) => Some(scene.for_app(app)?),
        (scene, _) => scene,
    };
    let examined = scene.as_ref().map(examine);
    let verdict = Verdict::new(subject, examined.as_ref());
    let lines = Lines::new(&verdict, scene.as_ref());
    let document = || json::json(&verdict, scene.as_ref());
    let mut is_written = arguments.json.write(|| text::text(&verdict, &lines), document);
    is_written &= output::write("--html", arguments.html.as_deref(), || page::page(&verdict, &lines));
    Ok(if is_written { verdict.answer.status() } else { Answer::Unknown.status() })
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
