//! Rewriting the source of an example into a variant of it.
//!
//! The source is read as tokens, which distinguishes attributes from comments, strings and function
//! bodies; edits insert or remove text at their positions. All other text stays unchanged, line for
//! line.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::Variant;
use super::attribute::{Attribute, is_ident, is_punct};

/// A task that prevents an empty first partition if all others must be in the second.
const RESTING: &str = r#" #[task(core = left)] fn rests_on_the_left(_: rests_on_the_left::Context) {} "#;

/// Returns the source of `variant`, or `None` if the app has no such variant.
pub(super) fn rewrite(source: &str, variant: Variant) -> Result<Option<String>, String> {
    let tokens: TokenStream = source.parse().map_err(|error| format!("it is not Rust: {error}"))?;
    let app = App::find(tokens)?;
    // An app that specifies its own executor or partitions has no variants.
    if app.attribute.entry("partitions").is_some() || app.attribute.entry("executor").is_some() {
        return Ok(None);
    }
    let mut edits: Vec<Edit> =
        app.attribute.entry("cpu").map(|entry| Edit::removal(&entry)).into_iter().collect();
    match variant {
        Variant::Global => edits.push(Edit::argument(&app.attribute, r#"executor = "global""#)),
        Variant::Split if app.tasks.is_empty() => return Ok(None),
        Variant::Split => {
            edits.push(Edit::argument(&app.attribute, "partitions = [left, right]"));
            let (cores, all_right) = app.cores();
            edits.extend(app.tasks.iter().zip(cores).map(|(task, core)| {
                let core = if core { "right" } else { "left" };
                Edit::argument(task, &format!("core = {core}"))
            }));
            if all_right {
                edits.push(Edit::insertion(app.end, RESTING.to_owned()));
            }
        }
    }
    Ok(Some(apply(source, edits)))
}

/// A piece of text to replace by another.
struct Edit {
    at: Range<usize>,
    by: String,
}

impl Edit {
    fn insertion(at: usize, by: String) -> Self {
        Self { at: at..at, by }
    }

    fn argument(attribute: &Attribute, argument: &str) -> Self {
        let (at, by) = attribute.with(argument);
        Self::insertion(at, by)
    }

    fn removal(entry: &[TokenTree]) -> Self {
        let at = |tree: &TokenTree| tree.span().byte_range();
        let at =
            entry.first().map_or(0, |first| at(first).start)..entry.last().map_or(0, |last| at(last).end);
        Self { at, by: String::new() }
    }
}

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    // Of an insertion and a removal at one position, the insertion comes first.
    edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
    let mut text = String::with_capacity(source.len() + 1024);
    let mut done = 0;
    for edit in edits {
        text.push_str(&source[done..edit.at.start]);
        text.push_str(&edit.by);
        done = edit.at.end;
    }
    text.push_str(&source[done..]);
    text
}

/// The relevant parts of an app.
struct App {
    attribute: Attribute,
    tasks: Vec<Attribute>,
    lock_free: Vec<String>,
    /// The position of its module's last brace.
    end: usize,
}

impl App {
    /// Returns the only module in the file with the attribute `#[punctual::app]`.
    fn find(tokens: TokenStream) -> Result<Self, String> {
        let mut found = None;
        let mut trees = tokens.into_iter();
        while let Some(tree) = trees.next() {
            let Some(attribute) = Attribute::read(&tree, "app") else { continue };
            let body = trees.find_map(|tree| braces(&tree).cloned());
            if let Some(body) = body
                && found.replace((attribute, body)).is_some()
            {
                return Err("it has several apps".to_owned());
            }
        }
        let (attribute, body) = found.ok_or("it has no app")?;
        let mut app = Self {
            attribute,
            tasks: Vec::new(),
            lock_free: Vec::new(),
            end: body.span_close().byte_range().start,
        };
        app.read(body.stream());
        Ok(app)
    }

    /// Collects the tasks and the `#[lock_free]` resources in the app's module or in an `extern`
    /// block of it.
    fn read(&mut self, items: TokenStream) {
        let mut resources = false;
        let mut foreign = false;
        for tree in items {
            if let Some(task) = Attribute::read(&tree, "task") {
                self.tasks.push(task);
            } else if Attribute::read(&tree, "shared").is_some() {
                resources = true;
            } else if is_ident(&tree, "extern") {
                foreign = true;
            } else if let Some(body) = braces(&tree) {
                if std::mem::take(&mut resources) {
                    self.lock_free.extend(lock_free(body.stream()));
                } else if std::mem::take(&mut foreign) {
                    self.read(body.stream());
                }
            }
        }
    }

    /// Returns whether each task is in the second partition, and whether all are.
    ///
    /// Tasks are assigned to the partitions alternately, but tasks that share a `#[lock_free]`
    /// resource go to the same partition, as do those of a level with local tasks. If all tasks end
    /// up in one partition, it is the second: `init` and `idle` are in the first.
    fn cores(&self) -> (Vec<bool>, bool) {
        let mut party: Vec<usize> = (0..self.tasks.len()).collect();
        let mut join = |belongs: &dyn Fn(&Attribute) -> bool| {
            let members = self.tasks.iter().enumerate().filter(|(_, task)| belongs(task));
            let members: Vec<usize> = members.map(|(index, _)| party[index]).collect();
            if let Some(&first) = members.iter().min() {
                party.iter_mut().filter(|party| members.contains(party)).for_each(|party| *party = first);
            }
        };
        for resource in &self.lock_free {
            join(&|task| task.shared().contains(resource));
        }
        for local in self.tasks.iter().filter(|task| task.entry("local_task").is_some()) {
            join(&|task| task.level() == local.level());
        }
        let mut parties = party.clone();
        parties.sort_unstable();
        parties.dedup();
        let alone = parties.len() == 1;
        let turn = |of: &usize| parties.iter().position(|party| party == of).unwrap_or(0);
        (party.iter().map(|party| alone || turn(party) % 2 == 1).collect(), alone)
    }
}

/// Returns the fields marked `#[lock_free]` in the body of a struct.
fn lock_free(fields: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    let mut last: Option<Ident> = None;
    for tree in fields {
        marked |= Attribute::read(&tree, "lock_free").is_some();
        // The first colon of a field follows its name; the mark is cleared before the colons of its
        // type.
        if marked && is_punct(&tree, ':') {
            names.extend(last.take().map(|name| name.to_string()));
            marked = false;
        }
        last = match tree {
            TokenTree::Ident(ident) => Some(ident),
            _ => None,
        };
    }
    names
}

fn braces(tree: &TokenTree) -> Option<&Group> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, global: &str, split: &str) {
        assert_eq!(rewrite(source, Variant::Global).unwrap().as_deref(), Some(global));
        assert_eq!(rewrite(source, Variant::Split).unwrap().as_deref(), Some(split));
    }

    #[test]
    fn gives_arguments_to_attribute_without() {
        check(
            "#[punctual::app]\nmod app {\n    #[task]\n    fn a() {}\n    #[task()] fn b() {} }\n",
            "#[punctual::app(executor = \"global\")]\nmod app {\n    #[task]\n    fn a() {}\n    #[task()] fn b() {} }\n",
            "#[punctual::app(partitions = [left, right])]\nmod app {\n    #[task(core = left)]\n    fn a() {}\n    \
             #[task(core = right)] fn b() {} }\n",
        );
    }

    #[test]
    fn adds_to_arguments_of_attribute() {
        check(
            "#[app(main = false)] mod app { #[task(priority = 2, local = [n: u32 = 0])] fn a() {} \
             #[cfg(unix)] #[task(priority = 1)] async fn b() {} }",
            "#[app(executor = \"global\", main = false)] mod app { #[task(priority = 2, local = [n: u32 = 0])] fn a() {} \
             #[cfg(unix)] #[task(priority = 1)] async fn b() {} }",
            "#[app(partitions = [left, right], main = false)] mod app { \
             #[task(core = left, priority = 2, local = [n: u32 = 0])] fn a() {} \
             #[cfg(unix)] #[task(core = right, priority = 1)] async fn b() {} }",
        );
    }

    #[test]
    fn removes_cpus_of_the_app() {
        let source = "#[app(cpu = CPUS - 1, strict)] mod app { #[task] fn a() {} #[task] fn b() {} }";
        let global = rewrite(source, Variant::Global).unwrap().unwrap();
        assert!(global.starts_with("#[app(executor = \"global\",  strict)] mod"), "{global}");
        let split = rewrite(source, Variant::Split).unwrap().unwrap();
        assert!(split.starts_with("#[app(partitions = [left, right],  strict)] mod"), "{split}");
    }

    #[test]
    fn ignores_tasks_outside_the_app() {
        let others = r##"
            // #[task] in a comment
            fn f() { #[task] fn inner() {} }
            macro_rules! m { () => { #[task] fn g() {} } }
            const TEXT: &str = r#"#[task] "#; const FLAG: bool = quote!(#[task]);
            #[tasks] #[task::like] struct S { #[task] field: u8 }
        "##;
        let source = format!(
            "#[task] fn no() {{}} #[app] mod app {{ {others} #[task] fn a() {{}} }} #[task] fn no() {{}}"
        );
        let split = rewrite(&source, Variant::Split).unwrap().unwrap();
        assert_eq!(split.matches("core = ").count(), 2, "{split}");
        assert!(split.contains("#[task(core = right)] fn a()"), "{split}");
    }

    #[test]
    fn tasks_in_extern_blocks_take_their_turn() {
        let source =
            r#"#[app] mod app { #[task] fn a() {} extern "Rust" { #[task] fn b(); } #[task] fn c() {} }"#;
        let split = rewrite(source, Variant::Split).unwrap().unwrap();
        assert!(split.contains(r#"#[task(core = right)] fn b();"#), "{split}");
        assert!(split.contains(r#"#[task(core = left)] fn c()"#), "{split}");
    }

    #[test]
    fn groups_users_of_lock_free_resource() {
        let source = "#[app] mod app {
            #[shared] struct S { a: m::T<u8>, #[lock_free] pub(super) b: m::T<u8, u8>, c: u8 }
            #[task(shared = [a, c])] fn t() {}
            #[task(shared = [b])] fn u() {}
            #[task(shared = [c])] fn v() {}
            #[task(shared = [#[cfg(a)] b, c])] fn w() {}
        }";
        let split = rewrite(source, Variant::Split).unwrap().unwrap();
        let cores: Vec<&str> = split
            .split("core = ")
            .skip(1)
            .map(|rest| rest.split([')', ',']).next().unwrap_or_default())
            .collect();
        assert_eq!(cores, ["left", "right", "left", "right"]);
    }

    #[test]
    fn keeps_level_with_local_tasks_together() {
        let source = "#[app] mod app {
            #[task(priority = 2)] fn s() {}
            #[task] fn t() {}
            #[task(priority = 1, local_task)] async fn u() {}
            #[task(priority = 2)] fn v() {}
        }";
        let split = rewrite(source, Variant::Split).unwrap().unwrap();
        let cores: Vec<&str> = split
            .split("core = ")
            .skip(1)
            .map(|rest| rest.split([')', ',']).next().unwrap_or_default())
            .collect();
        assert_eq!(cores, ["left", "right", "right", "left"]);
    }

    #[test]
    fn moves_single_task_away_from_init() {
        let source = "#[app] mod app { #[task] fn a() {}\n}\n";
        let split = rewrite(source, Variant::Split).unwrap().unwrap();
        assert!(split.contains("#[task(core = right)] fn a() {}"), "{split}");
        assert!(split.contains(RESTING) && split.lines().count() == source.lines().count(), "{split}");
    }

    #[test]
    fn makes_no_variant_of_some_apps() {
        let both = |source| {
            [Variant::Global, Variant::Split].map(|variant| rewrite(source, variant).unwrap().is_some())
        };
        assert_eq!(both("#[app] mod app {}"), [true, false]);
        assert_eq!(both("#[app(partitions = [a])] mod app { #[task] fn t() {} }"), [false, false]);
        assert_eq!(both(r#"#[app(executor = "global")] mod app { #[task] fn t() {} }"#), [false, false]);
        assert!(rewrite("fn main() {}", Variant::Global).is_err());
        assert!(rewrite("#[app] mod a {} #[app] mod b {}", Variant::Global).is_err());
    }
}
