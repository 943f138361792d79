//! The source of what an app says of itself.

use super::model::{Idle, Kind, Manner, Model, Overrun};
use super::text::Text;

/// What the app says of itself.
pub(super) fn write(text: &mut Text, model: &Model) {
    let Model { seed, monitored, .. } = model;
    let idle = match &model.idle {
        Some(Idle { manner: Manner::Stubborn, .. }) => {
            format!("Idle::Stubborn {{ in_common: {}, locks: {} }}", model.in_common(), model.idle_locks())
        }
        _ => "Idle::Tame".to_owned(),
    };
    let (hook, executor) = (model.hook.is_some(), model.executor);
    text.block("pub static APP: App = App {", "};", |text| {
        text.line(format_args!("name: \"app_{seed}\","));
        text.line(format_args!("seed: {seed},"));
        text.line("run: app::run,");
        text.block("tasks: &[", "],", |text| {
            for (number, task) in model.tasks.iter().enumerate() {
                let name = format!("t{number}");
                let door = match task.kind {
                    Kind::Message { arguments, .. } => {
                        let a = if arguments == 1 { "a" } else { "a, Token::new(Kind::Extra)" };
                        format!(
                            "Door::Message {{ spawn: |a| app::{name}::spawn({a}).map_err(|error| error.into_inner().into()), \
                             after: |time, a| app::{name}::spawn_after(time, {a}).map(|handle| Box::new(handle) as Box<dyn Handle>)\
                             .map_err(|error| error.into_inner().into()) }}"
                        )
                    }
                    Kind::Async => {
                        format!("Door::Async(|a| app::{name}::spawn(a).map_err(|error| error.into_inner().into()))")
                    }
                    Kind::Bound => format!("Door::Pend(|| app::{name}::pend())"),
                    Kind::Periodic { .. } | Kind::Local | Kind::Handler { .. } => "Door::Closed".to_owned(),
                };
                let unseen = match task.kind {
                    Kind::Message { .. } => 0,
                    Kind::Periodic { overrun: Overrun::Queue(capacity), .. } => 1 + capacity,
                    Kind::Periodic { .. } | Kind::Bound => 1,
                    // One that is dropped when its turn comes counts once more at the end.
                    Kind::Async | Kind::Local => 2,
                    Kind::Handler { capacity } => capacity,
                };
                let counted = !task.kind.is_async();
                let is_local = task.kind == Kind::Local;
                let stops = matches!(task.kind, Kind::Periodic { overrun: Overrun::Stop, .. });
                text.line(format_args!(
                    "Task {{ name: \"{name}\", spot: T{number}, door: {door}, is_local: {is_local}, counted: {counted}, unseen: {unseen}, stops: {stops} }},"
                ));
            }
        });
        text.line(format_args!("monitored: {monitored},"));
        text.line(format_args!("hook: {hook},"));
        text.line(format_args!("idle: {idle},"));
        text.line(format_args!("executor: \"{executor}\","));
    });
}
