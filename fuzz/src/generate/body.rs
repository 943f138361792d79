//! Generates the source of bodies.

use super::model::{Model, Step, Wait};
use super::source::{Names, Text};

/// Context of steps: partition and level of the body, and requirements on the values that it keeps.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) model: &'a Model,
    pub(super) part: usize,
    pub(super) level: u8,
    /// Number of the async task, and whether its level is local.
    pub(super) waits: Option<(usize, bool)>,
    /// Names of the local resources.
    pub(super) local: Names,
}

/// Writes the source of steps in a body.
pub(super) fn steps(text: &mut Text, place: Place<'_>, steps: &[Step]) {
    steps.iter().for_each(|step| self::step(text, place, step));
}

fn step(text: &mut Text, place: Place<'_>, step: &Step) {
    let Place { model, part, level, waits, local } = place;
    // Only the outermost steps of an async task are outside of a closure.
    let within = Place { waits: None, ..place };
    let nested = |text: &mut Text, begin: String, end: String, inner: &[Step]| {
        text.block(begin, end, |text| self::steps(text, within, inner));
    };
    match step {
        Step::Point => text.line("job.point();"),
        Step::Lock(all, inner) => {
            let rights: Vec<String> = all.iter().map(|number| format!("cx.shared.r{number}")).collect();
            let names: Vec<String> = all.iter().map(|number| format!("r{number}")).collect();
            let visits = all.iter().map(|&number| {
                format!("r{number}.visit({part}, {}, || ", model.ceiling(number, part, level))
            });
            let rights = if all.len() == 1 { rights.concat() } else { format!("({})", rights.join(", ")) };
            let begin = format!("{rights}.lock(|{}| {}{{", names.join(", "), visits.collect::<String>());
            text.block("{", "}", |text| {
                text.line("let _section = Section;");
                nested(text, begin, format!("}}{});", ")".repeat(all.len())), inner);
            });
        }
        Step::Use(number, inner) => {
            nested(text, format!("cx.shared.r{number}.visit({part}, 0, || {{"), "});".to_owned(), inner);
        }
        Step::Inspect(number) => text.line(format_args!("cx.shared.r{number}.inspect();")),
        Step::Local(inner) => {
            nested(text, format!("cx.local.l{}.visit(0, 0, || {{", local.local), "});".to_owned(), inner);
        }
        Step::InPlace(inner) => {
            nested(text, format!("cx.local.l{}.visit(0, 0, || {{", local.in_place), "});".to_owned(), inner);
        }
        Step::Keep(inner) => text.block("{", "}", |text| {
            if let Some((number, _)) = waits {
                text.line(format_args!("let _alone = Alone::at(T{number});"));
            }
            text.line("let _kept = Token::new(Kind::Stack);");
            self::steps(text, within, inner);
        }),
        Step::SpawnLocal(task) => {
            text.line(format_args!("Job::spawn_local({task}, |pinned| cx.local_spawner.t{task}(pinned).map_err(punctual::SpawnError::into_inner));"));
        }
        Step::Wait(wait, keeps) => text.block("{", "}", |text| {
            if *keeps {
                let ty = if waits.is_some_and(|(_, local)| local) { "Pinned" } else { "Token" };
                text.line(format_args!("let kept = {ty}::new(Kind::Future);"));
            }
            if matches!(wait, Wait::Delay | Wait::Timeout | Wait::Readable) {
                text.line("let time = job.delay();");
            }
            if let (Wait::Readable, Some((number, _))) = (wait, waits) {
                text.line(format_args!("let inbox = watch::inbox({number});"));
            }
            text.line(match wait {
                Wait::Delay => "punctual::delay(time).await;",
                Wait::Parked => "Parked::default().await;",
                Wait::Timeout => "let _ = punctual::timeout_after(time, Parked::default()).await;",
                Wait::Readable => "let _ = punctual::timeout_after(time, punctual::readable(&inbox)).await;",
                Wait::Yield => "Yield::default().await;",
                Wait::Never => "std::future::pending::<()>().await;",
            });
            if *keeps {
                text.line("kept.touch();");
            }
        }),
    }
}
