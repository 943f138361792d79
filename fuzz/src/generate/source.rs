//! Generates the source of an app.

use std::fmt;

use punctual::model::OnOverrun;

use super::body::{self, Place};
use super::model::{Access, Executor, Idle, Kind, Manner, Model, Step, Task, Wait};

/// Numbers of the two local resources of a task or `idle`, which are also in their names.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) local: usize,
    pub(super) in_place: usize,
}

impl Names {
    fn of(model: &Model, user: usize) -> Self {
        let local = model.resources.len() + 2 * user;
        Self { local, in_place: local + 1 }
    }
}

/// Returns the source of a module that contains the app.
pub fn source(model: &Model) -> String {
    let mut text = Text::default();
    text.line(format_args!("// Made up by punctual-fuzz from the seed {}.", model.seed));
    text.line("use punctual_fuzz::app::{App, Interface, Handle, Idle, Spot, Task};");
    text.line("use punctual_fuzz::token::{Kind, Token};");
    text.line("");
    for (number, task) in model.tasks.iter().enumerate() {
        let Task { part, level, .. } = task;
        text.line(format_args!(
            "const T{number}: Spot = Spot {{ task: {number}, part: {part}, level: {level} }};"
        ));
    }
    text.line("");
    text.line(format_args!("#[punctual::app({})]", arguments(model)));
    text.block("pub mod app {", "}", |text| module(text, model));
    text.line("");
    description(&mut text, model);
    text.finish()
}

/// Returns the arguments of the attribute.
fn arguments(model: &Model) -> String {
    let mut all = vec!["main = false".to_owned()];
    if !model.monitored {
        all.push("monitor = false".to_owned());
    }
    match (model.executor, model.polling) {
        (Executor::One, _) => {}
        (Executor::Global, _) => all.push("executor = \"global\"".to_owned()),
        (_, None) => all.push("partitions = [one, two]".to_owned()),
        (_, Some(0)) => all.push("partitions = [one(poll), two]".to_owned()),
        (_, Some(_)) => all.push("partitions = [one, two(poll)]".to_owned()),
    }
    all.join(", ")
}

fn module(text: &mut Text, model: &Model) {
    text.line("use punctual::prelude::*;");
    text.line("use punctual_fuzz::job::{Job, Role};");
    text.line("use punctual_fuzz::token::{Kind, Pinned, Token};");
    text.line("use punctual_fuzz::wakers::{Parked, Yield};");
    text.line("use punctual_fuzz::watch::{self, Alone, Guarded, Idling, Line, Section};");
    text.line("use super::*;");
    text.line("");
    text.block("#[shared]\nstruct Shared {", "}", |text| {
        for (number, resource) in model.resources.iter().enumerate() {
            let lock_free = if resource.access == Access::LockFree { "#[lock_free] " } else { "" };
            text.line(format_args!("{lock_free}r{number}: Guarded,"));
        }
    });
    text.block("#[local]\nstruct Local {", "}", |text| {
        locals(model, |name, ty, _| text.line(format_args!("{name}: {ty},")))
    });
    text.line("");
    init(text, model);
    if let Some(idle) = &model.idle {
        text.line("");
        self::idle(text, model, idle);
    }
    for (number, task) in model.tasks.iter().enumerate() {
        text.line("");
        self::task(text, model, number, task);
    }
    hook(text, model);
}

/// Calls `each` with name, type and value of the fields of the local struct.
fn locals(model: &Model, mut each: impl FnMut(String, &str, String)) {
    let tasks = model.tasks.len();
    for (number, task) in model.tasks.iter().enumerate() {
        let local = Names::of(model, number).local;
        if task.kind == Kind::Bound {
            each(format!("l{local}"), "Line", format!("Line::new({number}, {local})"));
        } else if task.local {
            each(format!("l{local}"), "Guarded", format!("Guarded::new({local}, Kind::Local)"));
        }
    }
    if let Some(idle) = model.idle.as_ref().filter(|idle| idle.local) {
        let local = Names::of(model, tasks).local;
        // A local of `idle` alone is never dropped.
        let kind = if idle.hooked { "Local" } else { "Eternal" };
        each(format!("l{local}"), "Guarded", format!("Guarded::new({local}, Kind::{kind})"));
    }
    for number in 0..model.unused {
        each(format!("unused{number}"), "Token", "Token::new(Kind::Local)".to_owned());
    }
}

fn init(text: &mut Text, model: &Model) {
    let own = Names::of(model, model.tasks.len() + 1).local;
    let local = format!("local = [l{own}: Guarded = Guarded::new({own}, Kind::Eternal)]");
    text.line(attribute("init", [model.init_local.then_some(local)]));
    text.block("fn init(cx: init::Context) -> (Shared, Local) {", "}", |text| {
        text.line("let mut job = Job::of(Role::Init);");
        text.line("job.point();");
        if model.init_local {
            text.line(format_args!("cx.local.l{own}.visit(0, 0, || job.point());"));
        }
        text.block("let shared = Shared {", "};", |text| {
            for number in 0..model.resources.len() {
                text.line(format_args!("r{number}: Guarded::new({number}, Kind::Shared),"));
            }
        });
        text.line("job.point();");
        text.block("let local = Local {", "};", |text| {
            locals(model, |name, _, value| text.line(format_args!("{name}: {value},")));
        });
        text.line("job.point();");
        text.line("punctual_fuzz::ledger::filled();");
        text.line("(shared, local)");
    });
}

/// Returns the entries of `shared` for a handler that uses these resources.
fn shared(model: &Model, used: impl Fn(usize) -> bool) -> Option<String> {
    let entry = |number: usize| match model.resources[number].access {
        Access::ByReference => format!("&r{number}"),
        _ => format!("r{number}"),
    };
    let all: Vec<String> = (0..model.resources.len()).filter(|&number| used(number)).map(entry).collect();
    (!all.is_empty()).then(|| format!("shared = [{}]", all.join(", ")))
}

fn attribute(name: &str, entries: impl IntoIterator<Item = Option<String>>) -> String {
    let entries: Vec<String> = entries.into_iter().flatten().collect();
    if entries.is_empty() { format!("#[{name}]") } else { format!("#[{name}({})]", entries.join(", ")) }
}

fn idle(text: &mut Text, model: &Model, idle: &Idle) {
    let local = Names::of(model, model.tasks.len());
    let place = Place { model, part: model.home(), level: 0, waits: None, local };
    let entries = [
        shared(model, |number| model.resources[number].idle),
        idle.local.then(|| format!("local = [l{}]", local.local)),
    ];
    text.line(attribute("idle", entries));
    let (result, turns, last) = match idle.manner {
        Manner::Returns => ("", "for _ in 0..3 {", None),
        Manner::Waits => (" -> !", "loop {", Some("punctual::wait_for_event();")),
        // In virtual time nothing could end it.
        Manner::Stubborn => (
            "",
            "while !punctual_fuzz::ledger::is_virtual() {",
            Some("std::thread::sleep(std::time::Duration::from_micros(50));"),
        ),
    };
    text.block(format_args!("fn idle(mut cx: idle::Context){result} {{"), "}", |text| {
        text.line("let _idling = Idling::begin();");
        text.line("let mut job = Job::of(Role::Idle);");
        let turns = |text: &mut Text| {
            text.block(turns, "}", |text| {
                body::steps(text, place, &idle.body);
                last.iter().for_each(|last| text.line(last));
            });
        };
        if idle.local {
            // `idle` holds it permanently.
            text.block(format_args!("cx.local.l{}.visit(0, 0, || {{", local.local), "})", turns);
        } else {
            turns(text);
        }
    });
}

fn task(text: &mut Text, model: &Model, number: usize, task: &Task) {
    let local = Names::of(model, number);
    let is_local_level = !model.local_tasks(task.part, task.level).is_empty();
    let waits = task.kind.is_async().then_some((number, is_local_level));
    let place = Place { model, part: task.part, level: task.level, waits, local };
    text.line(attribute("task", keys(model, number, task)));
    let arguments = match task.kind {
        Kind::Message { arguments: 1, .. } | Kind::Async => ", a: Token",
        Kind::Message { .. } => ", a: Token, b: Token",
        Kind::Local => ", a: Pinned",
        Kind::Periodic { .. } | Kind::Bound | Kind::Handler { .. } => "",
    };
    let asynch = if task.kind.is_async() { "async " } else { "" };
    let head = format!("{asynch}fn t{number}(mut cx: t{number}::Context{arguments}) {{");
    text.block(head, "}", |text| {
        let take = match task.kind {
            Kind::Message { .. } | Kind::Async => format!("job.take(T{number}, &a);"),
            Kind::Local => format!("job.take_pinned(T{number}, &a);"),
            _ => String::new(),
        };
        if task.kind.is_async() {
            text.block("let mut job = {", "};", |text| {
                text.line(format_args!("let _alone = Alone::at(T{number});"));
                text.line(format_args!("let job = Job::start(T{number});"));
                text.line(take);
                text.line("job");
            });
        } else {
            text.line(format_args!("let _alone = Alone::at(T{number});"));
            text.line(format_args!("let mut job = Job::start(T{number});"));
            text.line(take);
        }
        if task.kind == Kind::Bound {
            // Unread data releases the task again.
            text.block("if job.below(8) > 0 {", "}", |text| {
                text.line(format_args!("cx.local.l{}.drain();", local.local));
            });
        }
        text.block(format_args!("match job.below({}) {{", task.bodies.len()), "}", |text| {
            for (number, body) in task.bodies.iter().enumerate() {
                let pattern =
                    if number + 1 == task.bodies.len() { "_".to_owned() } else { number.to_string() };
                text.block(format_args!("{pattern} => {{"), "}", |text| body::steps(text, place, body));
            }
        });
    });
}

/// Returns the keys of a task's attribute.
fn keys(model: &Model, number: usize, task: &Task) -> Vec<Option<String>> {
    let names = Names::of(model, number);
    let mut keys = vec![Some(format!("priority = {}", task.level))];
    if model.parts() > 1 {
        keys.push(Some(format!("core = {}", ["one", "two"][task.part])));
    }
    match task.kind {
        Kind::Message { capacity, .. } | Kind::Handler { capacity } => {
            keys.push(Some(format!("capacity = {capacity}")));
        }
        Kind::Periodic { period, offset, on_overrun, capacity } => {
            keys.push(Some(format!("period = {period}.micros()")));
            keys.push((offset > 0).then(|| format!("offset = {offset}.micros()")));
            // The default is not written.
            let is_default = on_overrun == OnOverrun::Skip;
            keys.push((!is_default).then(|| format!("on_overrun = {}", on_overrun.name())));
            keys.push((on_overrun == OnOverrun::Queue).then(|| format!("capacity = {capacity}")));
        }
        Kind::Bound => keys.push(Some(format!("binds = l{}", names.local))),
        Kind::Async => {}
        Kind::Local => keys.push(Some("local_task".to_owned())),
    }
    let reads = |step: &Step| matches!(step, Step::Wait(Wait::Readable, _));
    keys.push(task.bodies.iter().flatten().any(reads).then(|| "waits = 4".to_owned()));
    if task.execution > 0 {
        keys.push(Some(format!("execution = {}.micros()", task.execution)));
    }
    keys.push(shared(model, |resource| model.resources[resource].users.contains(&number)));
    let mut local = Vec::new();
    if task.local || task.kind == Kind::Bound {
        local.push(format!("l{}", names.local));
    }
    if task.in_place {
        let number = names.in_place;
        local.push(format!("l{number}: Guarded = Guarded::new({number}, Kind::InPlace)"));
    }
    keys.push((!local.is_empty()).then(|| format!("local = [{}]", local.join(", "))));
    keys
}

fn hook(text: &mut Text, model: &Model) {
    let Some(hook) = &model.hook else { return };
    let tasks = model.tasks.iter().enumerate();
    let hooked = tasks.filter(|(_, task)| task.hooked && task.local && task.kind != Kind::Bound);
    let mut local: Vec<usize> = hooked.map(|(number, _)| Names::of(model, number).local).collect();
    if model.idle.as_ref().is_some_and(|idle| idle.hooked) {
        local.push(Names::of(model, model.tasks.len()).local);
    }
    let names: Vec<String> = local.iter().map(|number| format!("l{number}")).collect();
    let entries = [
        shared(model, |number| model.resources[number].hook),
        (!names.is_empty()).then(|| format!("local = [{}]", names.join(", "))),
    ];
    let within = if hook.points { "job.point()" } else { "()" };
    text.line("");
    text.line(attribute("shutdown", entries));
    text.block("fn shutdown(cx: shutdown::Context) {", "}", |text| {
        text.line("watch::hook();");
        text.line("let mut job = Job::of(Role::Hook);");
        for (number, resource) in model.resources.iter().enumerate().filter(|(_, resource)| resource.hook) {
            text.line(match resource.access {
                Access::ByReference => format!("cx.shared.r{number}.inspect();"),
                _ => format!("cx.shared.r{number}.visit(0, 0, || {within});"),
            });
        }
        local
            .iter()
            .for_each(|number| text.line(format_args!("cx.local.l{number}.visit(0, 0, || {within});")));
        if hook.points {
            text.line("job.point();");
        }
    });
}

/// Writes the description of the app for the runner.
fn description(text: &mut Text, model: &Model) {
    let Model { seed, monitored, .. } = model;
    let idle = match &model.idle {
        Some(Idle { manner: Manner::Stubborn, .. }) => {
            format!("Idle::Stubborn {{ in_common: {}, locks: {} }}", model.in_common(), model.idle_locks())
        }
        _ => "Idle::Tame".to_owned(),
    };
    let (hook, executor) = (model.hook.is_some(), model.executor.name());
    text.block("pub static APP: App = App {", "};", |text| {
        text.line(format_args!("name: \"app_{seed}\","));
        text.line(format_args!("seed: {seed},"));
        text.line("run: app::run,");
        text.block("tasks: &[", "],", |text| {
            for (number, task) in model.tasks.iter().enumerate() {
                let name = format!("t{number}");
                let interface = match task.kind {
                    Kind::Message { arguments, .. } => {
                        let a = if arguments == 1 { "a" } else { "a, Token::new(Kind::Extra)" };
                        format!(
                            "Interface::Message {{ spawn: |a| app::{name}::spawn({a}).map_err(|error| error.into_inner().into()), \
                             after: |time, a| app::{name}::spawn_after(time, {a}).map(|handle| Box::new(handle) as Box<dyn Handle>)\
                             .map_err(|error| error.into_inner().into()) }}"
                        )
                    }
                    Kind::Async => {
                        format!("Interface::Async(|a| app::{name}::spawn(a).map_err(|error| error.into_inner().into()))")
                    }
                    Kind::Bound => format!("Interface::Pend(|| app::{name}::pend())"),
                    Kind::Periodic { .. } | Kind::Local | Kind::Handler { .. } => "Interface::Closed".to_owned(),
                };
                let unseen = match task.kind {
                    Kind::Message { .. } => 0,
                    Kind::Periodic { on_overrun: OnOverrun::Queue, capacity, .. } => 1 + capacity,
                    Kind::Periodic { .. } | Kind::Bound => 1,
                    // An instance that is dropped when its turn comes counts once more at the end.
                    Kind::Async | Kind::Local => 2,
                    Kind::Handler { capacity } => capacity,
                };
                let counted = !task.kind.is_async();
                let is_local = task.kind == Kind::Local;
                let stops = matches!(task.kind, Kind::Periodic { on_overrun: OnOverrun::Stop, .. });
                text.line(format_args!(
                    "Task {{ name: \"{name}\", spot: T{number}, interface: {interface}, is_local: {is_local}, counted: {counted}, unseen: {unseen}, stops: {stops} }},"
                ));
            }
        });
        text.line(format_args!("monitored: {monitored},"));
        text.line(format_args!("hook: {hook},"));
        text.line(format_args!("idle: {idle},"));
        text.line(format_args!("executor: \"{executor}\","));
    });
}

/// Lines of source.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// Adds a line.
    pub(super) fn line(&mut self, line: impl fmt::Display) {
        let line = line.to_string();
        let indent = if line.is_empty() { 0 } else { self.depth * 4 };
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// Adds a line, further ones within it, and the line that ends it.
    pub(super) fn block(
        &mut self,
        begin: impl fmt::Display,
        end: impl fmt::Display,
        within: impl FnOnce(&mut Self),
    ) {
        self.line(begin);
        self.depth += 1;
        within(self);
        self.depth -= 1;
        self.line(end);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}
