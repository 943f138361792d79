//! CPU time of release builds of apps with different numbers of tasks, with the dependencies built.
//!
//! Of ten tasks four are periodic, four take a message, one is async, and one spawns itself for a
//! later time. Each locks two shared resources, and most spawn another task. The profile is the
//! default one of cargo, as in a user's package.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::{Result, cargo, process};

const TASKS: [usize; 6] = [1, 10, 25, 50, 100, 200];

/// Clock ticks of `/proc` per second (`USER_HZ`), the same on all architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// Builds the apps, and prints the CPU time of each.
pub(super) fn run() -> Result {
    let package = cargo::target_dir().join("compile-time");
    write(&package)?;
    // The first build includes the dependencies.
    build(&package, TASKS[0])?;
    println!("tasks  CPU time  per further task");
    let mut before = None;
    for tasks in TASKS {
        let seconds = build(&package, tasks)?;
        let further = before.map(|(fewer, less)| per_task(tasks - fewer, seconds - less));
        println!("{tasks:5}  {seconds:6.2} s  {}", further.unwrap_or_default());
        before = Some((tasks, seconds));
    }
    Ok(())
}

fn per_task(tasks: usize, seconds: f64) -> String {
    format!("{:.3} s", seconds / tasks as f64)
}

/// Writes a package outside of the workspace, without apps.
fn write(package: &Path) -> Result {
    let punctual = cargo::root().join("crates/punctual");
    let manifest = format!(
        "[package]\nname = \"compile-time\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\npunctual = {{ path = {punctual:?} }}\n\n[workspace]\n"
    );
    fs::create_dir_all(package.join("src/bin"))?;
    fs::write(package.join("Cargo.toml"), manifest)?;
    fs::copy(cargo::root().join("Cargo.lock"), package.join("Cargo.lock"))?;
    Ok(())
}

/// Writes an app and builds it; returns the CPU time of the build in seconds.
fn build(package: &Path, tasks: usize) -> Result<f64> {
    fs::write(package.join(format!("src/bin/app_{tasks}.rs")), app(tasks))?;
    let mut command = cargo::command();
    command.current_dir(package).env("CARGO_TARGET_DIR", package.join("target"));
    command.args(["build", "--quiet", "--offline", "--release", "--bin", &format!("app_{tasks}")]);
    let before = children_cpu_time()?;
    process::succeed(&mut command)?;
    Ok(children_cpu_time()? - before)
}

/// Returns the CPU time of all processes that this one has waited for, in seconds.
fn children_cpu_time() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    cpu_time_in(&stat).ok_or_else(|| format!("no CPU time in /proc/self/stat: {stat}").into())
}

/// Returns `cutime` and `cstime` of a process, together in seconds.
fn cpu_time_in(stat: &str) -> Option<f64> {
    // The name, in parentheses, may contain anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some((f64::from(ticks()?) + f64::from(ticks()?)) / TICKS_PER_SECOND)
}

/// Returns the source of an app.
fn app(tasks: usize) -> String {
    let resources = tasks.div_ceil(3);
    let list = |number, item: &dyn Fn(usize) -> String| (0..number).map(item).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "#![allow(dead_code)]\n\n#[punctual::app]\nmod app {{\n    use punctual::prelude::*;\n\n    \
         pub struct Message {{ time: u64, values: [f64; 4] }}\n\n    \
         #[shared]\n    struct Shared {{ {shared} }}\n\n    \
         #[local]\n    struct Local {{}}\n\n    \
         #[init]\n    fn init(_: init::Context) -> (Shared, Local) {{\n        (Shared {{ {initial} }}, Local {{}})\n    }}\n",
        shared = list(resources, &|resource| format!("r{resource}: f64")),
        initial = list(resources, &|resource| format!("r{resource}: 0.0")),
    );
    for index in 0..tasks {
        task(&mut text, index, tasks, resources);
    }
    text + "}\n"
}

fn task(text: &mut String, index: usize, tasks: usize, resources: usize) {
    let (priority, first, second) = (1 + index % 20, index % resources, (index + 1) % resources);
    let shared = if first == second { format!("r{first}") } else { format!("r{first}, r{second}") };
    let keys = format!("priority = {priority}, shared = [{shared}], local = [count: u64 = 0]");
    let takes_message = |task: &usize| (4..8).contains(&(task % 10));
    let receiver = (index + 1..tasks).chain(0..index).find(takes_message);
    let spawn = receiver.map_or(String::new(), |task| {
        format!(
            "\n        if value > 1e9 {{ let _ = t{task}::spawn(Message {{ time: 1, values: [value; 4] }}, {index}); }}"
        )
    });
    let body = format!(
        "*cx.local.count += 1;\n        \
         cx.shared.r{first}.lock(|r| *r += 1.0);\n        \
         let value = cx.shared.r{second}.lock(|r| *r);{spawn}\n        let _ = value;"
    );
    let context = format!("mut cx: t{index}::Context");
    let (keys, signature, body) = match index % 10 {
        0..4 => {
            let period = 1 + index % 7;
            let keys = format!("{keys}, period = {period}.millis(), deadline = 900.micros()");
            (keys, format!("fn t{index}({context})"), body)
        }
        4..8 => {
            let capacity = 1 + index % 8;
            let keys = format!("{keys}, capacity = {capacity}");
            let body = format!(
                "*cx.local.count += message.time + message.values.len() as u64 + from;\n        {body}"
            );
            (keys, format!("fn t{index}({context}, message: Message, from: u64)"), body)
        }
        8 => (
            keys,
            format!("async fn t{index}({context})"),
            format!("punctual::delay(1.millis()).await;\n        {body}"),
        ),
        _ => {
            let body = format!("let _ = t{index}::spawn_after(1.secs());\n        {body}");
            (keys, format!("fn t{index}({context})"), body)
        }
    };
    // Writing to a string does not fail.
    let _ = write!(text, "\n    #[task({keys})]\n    {signature} {{\n        {body}\n    }}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_have_their_number_of_tasks() {
        for tasks in TASKS {
            let file: syn::File = syn::parse_str(&app(tasks)).unwrap();
            let syn::Item::Mod(app) = &file.items[0] else { panic!("the app is a module") };
            let (_, items) = app.content.as_ref().unwrap();
            let is_task = |item: &&syn::Item| matches!(item, syn::Item::Fn(item) if item.attrs.iter().any(|attr| attr.path().is_ident("task")));
            assert_eq!(items.iter().filter(is_task).count(), tasks);
        }
    }

    #[test]
    fn reads_cpu_time_of_children() {
        let stat = "4711 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 200 150 25 20 0 1 0 1234";
        assert_eq!(cpu_time_in(stat), Some(1.75));
        assert_eq!(cpu_time_in("4711 (a) S 1"), None);
        assert!(children_cpu_time().unwrap() >= 0.0);
    }
}
