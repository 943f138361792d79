//! The result as a page.

use std::fmt::Write as _;

use punctual_report::escape::{Code, Escaped};
use punctual_report::format::format_count;
use punctual_report::page::{Figure, Frame, Page, note};

use super::Lines;
use super::text;
use super::verdict::{Answer, Verdict};

const STYLE: &str = "\
.causes li { margin-bottom: 0.75rem; }
.remedy { display: block; white-space: pre-wrap; overflow-wrap: anywhere; padding: 0.25rem 0; }
";

/// Returns the whole page.
pub(super) fn page(verdict: &Verdict, lines: &Lines) -> String {
    let title = format!("Is {} on time?", verdict.subject.name);
    let finding = format!("{}: {}", verdict.answer.as_str(), verdict.reason);
    let about = [finding, text::margin(verdict).unwrap_or_default(), lines.about.clone()];
    let about: Vec<String> = about.into_iter().filter(|line| !line.is_empty()).collect();
    let mut page = Page::new(&Frame { title: &title, lines: &about, style: STYLE, ..Frame::default() });
    page.figures(&figures(verdict));
    let body = page.body();
    if !verdict.subject.tasks.is_empty() {
        let table = text::table(&verdict.subject.tasks).html("Tasks");
        let _ = writeln!(body, "<section><h2>Tasks</h2>{table}");
        let profiled = match text::is_profiled(&verdict.subject.tasks) {
            true => ", `prof.`: the same with the cost of the profiler, which `seen` contains as well",
            false => "",
        };
        *body += &note(&format!(
            "T period, D deadline from the release, `seen`: longest measured response, `bound`: proven \
             response{profiled}. A dash is an unknown or undeclared value."
        ));
        *body += "</section>\n";
    }
    if !verdict.causes.is_empty() {
        *body += "<section><h2>Largest causes of delay</h2><ol class=\"causes\">\n";
        for cause in &verdict.causes {
            let tag = if cause.is_command { "code" } else { "span" };
            let _ = writeln!(
                body,
                "<li>{}<{tag} class=\"remedy\">{}</{tag}></li>",
                Code(&text::describe(cause)),
                Escaped(text::remedy(cause))
            );
        }
        *body += "</ol></section>\n";
    }
    if !verdict.subject.unknown.is_empty() {
        *body += "<section><h2>Unknown</h2><ul>\n";
        for unknown in &verdict.subject.unknown {
            let _ = writeln!(body, "<li>{}: {}</li>", Code(&unknown.what), Code(&unknown.why));
        }
        *body += "</ul></section>\n";
    }
    page.finish()
}

fn figures(verdict: &Verdict) -> Vec<Figure> {
    let answer = Figure::new("On time here", verdict.answer.as_str(), &verdict.reason);
    let mut figures = vec![answer.fault_if(verdict.answer == Answer::No)];
    if let Some((task, percent)) = verdict.worst().and_then(|task| Some((task, text::percent(task)?))) {
        let detail = format!("left of the deadline of `{}`", task.name);
        let is_late = task.margin().is_some_and(|margin| margin < 0.0);
        figures.push(Figure::new("Margin of the worst task", percent, detail).fault_if(is_late));
    }
    let jobs: u64 = verdict.subject.tasks.iter().filter_map(|task| task.jobs).sum();
    if jobs > 0 {
        figures.push(Figure::new("Jobs measured", format_count(jobs), "of all tasks"));
    }
    figures
}
