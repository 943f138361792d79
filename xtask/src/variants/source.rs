//! Rewriting the source of an example into a variant of it.
//!
//! Edits insert or remove text at the positions of attributes. All other text stays unchanged, line
//! for line.

use std::ops::Range;

use proc_macro2::TokenTree;
use syn::{Attribute, File, ForeignItem, Item, Meta};

use super::Variant;
use crate::mutants::range;

/// A task that prevents an empty first partition if all others must be in the second.
const RESTING: &str = r#" #[task(core = left)] fn rests_on_the_left(_: rests_on_the_left::Context) {} "#;

/// Returns the source of `variant`, or `None` if the app has no such variant.
pub(super) fn rewrite(source: &str, variant: Variant) -> Result<Option<String>, String> {
    let file: File = syn::parse_str(source).map_err(|error| format!("it is not Rust: {error}"))?;
    let app = App::find(&file)?;
    // An app that specifies its own executor or partitions has no variants.
    if entry(app.attribute, "partitions").is_some() || entry(app.attribute, "executor").is_some() {
        return Ok(None);
    }
    let cpu = entry(app.attribute, "cpu").unwrap_or_default();
    let mut edits = Vec::new();
    if let [first, .., last] = cpu.as_slice() {
        edits.push((range(first).start..range(last).end, String::new()));
    }
    match variant {
        Variant::Global => edits.push(with(app.attribute, r#"executor = "global""#)),
        Variant::Split if app.tasks.is_empty() => return Ok(None),
        Variant::Split => {
            edits.push(with(app.attribute, "partitions = [left, right]"));
            let (cores, all_right) = app.cores();
            edits.extend(app.tasks.iter().zip(cores).map(|(task, core)| {
                let core = if core { "right" } else { "left" };
                with(task, &format!("core = {core}"))
            }));
            if all_right {
                edits.push((app.end..app.end, RESTING.to_owned()));
            }
        }
    }
    Ok(Some(apply(source, edits)))
}

/// Bytes of the source, and the text that replaces them.
type Edit = (Range<usize>, String);

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    // Of an insertion and a removal at one position, the insertion comes first.
    edits.sort_by_key(|(at, _)| (at.start, at.end));
    let mut text = String::with_capacity(source.len() + 1024);
    let mut done = 0;
    for (at, by) in edits {
        text.push_str(&source[done..at.start]);
        text.push_str(&by);
        done = at.end;
    }
    text.push_str(&source[done..]);
    text
}

/// Returns the attribute among these whose path ends with `name`.
fn marked<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Meta> {
    let is_named = |meta: &&Meta| meta.path().segments.last().is_some_and(|last| last.ident == name);
    attributes.iter().map(|attribute| &attribute.meta).find(is_named)
}

/// Inserts another argument of an attribute before the others.
fn with(attribute: &Meta, argument: &str) -> Edit {
    let (at, text) = match attribute {
        Meta::List(list) => {
            let comma = if list.tokens.is_empty() { "" } else { ", " };
            (list.delimiter.span().open().byte_range().end, format!("{argument}{comma}"))
        }
        _ => (range(attribute).end, format!("({argument})")),
    };
    (at..at, text)
}

/// Returns the tokens of the argument named `key`, with the comma after it.
fn entry(attribute: &Meta, key: &str) -> Option<Vec<TokenTree>> {
    let Meta::List(list) = attribute else { return None };
    let arguments: Vec<TokenTree> = list.tokens.clone().into_iter().collect();
    let is_comma = |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ',');
    let is_key = |entry: &&[TokenTree]| matches!(&entry[0], TokenTree::Ident(ident) if ident == key);
    arguments.split_inclusive(is_comma).find(is_key).map(<[TokenTree]>::to_vec)
}

/// Returns the level of a task.
fn level(task: &Meta) -> String {
    // The key, the equals sign, the value.
    let entry = entry(task, "priority").unwrap_or_default();
    entry.get(2).map_or("1".to_owned(), ToString::to_string)
}

/// Returns whether a task lists a shared resource.
fn uses(task: &Meta, resource: &str) -> bool {
    let lists = entry(task, "shared").into_iter().flatten().filter_map(|tree| match tree {
        TokenTree::Group(list) => Some(list.stream()),
        _ => None,
    });
    // An attribute is a group, so only the names are left.
    lists.flatten().any(|tree| matches!(tree, TokenTree::Ident(name) if name == resource))
}

/// The relevant parts of an app.
struct App<'a> {
    attribute: &'a Meta,
    tasks: Vec<&'a Meta>,
    lock_free: Vec<String>,
    /// The position of its module's last brace.
    end: usize,
}

impl<'a> App<'a> {
    /// Returns the only module in the file with the attribute `#[punctual::app]`.
    fn find(file: &'a File) -> Result<Self, String> {
        let mut apps = file.items.iter().filter_map(|item| match item {
            Item::Mod(module) => Some((marked(&module.attrs, "app")?, module.content.as_ref()?)),
            _ => None,
        });
        let (attribute, (braces, items)) = apps.next().ok_or("it has no app")?;
        if apps.next().is_some() {
            return Err("it has several apps".to_owned());
        }
        let end = braces.span.close().byte_range().start;
        let mut app = Self { attribute, tasks: Vec::new(), lock_free: Vec::new(), end };
        items.iter().for_each(|item| app.read(item));
        Ok(app)
    }

    /// Collects the tasks and the `#[lock_free]` resources.
    fn read(&mut self, item: &'a Item) {
        match item {
            Item::Fn(function) => self.tasks.extend(marked(&function.attrs, "task")),
            Item::ForeignMod(block) => {
                let tasks = block.items.iter().filter_map(|item| match item {
                    ForeignItem::Fn(function) => marked(&function.attrs, "task"),
                    _ => None,
                });
                self.tasks.extend(tasks);
            }
            Item::Struct(item) if marked(&item.attrs, "shared").is_some() => {
                let fields = item.fields.iter().filter(|field| marked(&field.attrs, "lock_free").is_some());
                self.lock_free.extend(fields.filter_map(|field| Some(field.ident.as_ref()?.to_string())));
            }
            _ => {}
        }
    }

    /// Returns whether each task is in the second partition, and whether all are.
    ///
    /// Tasks are assigned to the partitions alternately, but tasks that share a `#[lock_free]`
    /// resource go to the same partition, as do those of a level with local tasks. If all tasks end
    /// up in one partition, it is the second: `init` and `idle` are in the first.
    fn cores(&self) -> (Vec<bool>, bool) {
        let mut party: Vec<usize> = (0..self.tasks.len()).collect();
        let mut join = |belongs: &dyn Fn(&Meta) -> bool| {
            let members = self.tasks.iter().enumerate().filter(|(_, task)| belongs(task));
            let members: Vec<usize> = members.map(|(index, _)| party[index]).collect();
            if let Some(&first) = members.iter().min() {
                party.iter_mut().filter(|party| members.contains(party)).for_each(|party| *party = first);
            }
        };
        for resource in &self.lock_free {
            join(&|task| uses(task, resource));
        }
        for local in self.tasks.iter().filter(|task| entry(task, "local_task").is_some()) {
            join(&|task| level(task) == level(local));
        }
        let mut parties = party.clone();
        parties.sort_unstable();
        parties.dedup();
        let alone = parties.len() == 1;
        let turn = |of: &usize| parties.iter().position(|party| party == of).unwrap_or(0);
        (party.iter().map(|party| alone || turn(party) % 2 == 1).collect(), alone)
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

    /// Returns the partition of each task.
    fn cores(source: &str) -> Vec<String> {
        let split = rewrite(source, Variant::Split).unwrap().unwrap();
        let cores = split.split("core = ").skip(1);
        cores.map(|rest| rest.split([')', ',']).next().unwrap_or_default().to_owned()).collect()
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
        assert_eq!(cores(source), ["left", "right", "left", "right"]);
    }

    #[test]
    fn keeps_level_with_local_tasks_together() {
        let source = "#[app] mod app {
            #[task(priority = 2)] fn s() {}
            #[task] fn t() {}
            #[task(priority = 1, local_task)] async fn u() {}
            #[task(priority = 2)] fn v() {}
        }";
        assert_eq!(cores(source), ["left", "right", "right", "left"]);
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
