//! Seeded bugs: each changes a piece of a package's source, and names the test that must detect it.
//!
//! A model may pass because it checks nothing. So each package has a table `tests/seeds.toml` of
//! bugs that are likely in its code, and `cargo xtask loom` shows that the tests detect them. A bug
//! is keyed by the path of its item and by tokens: moving the item or changing the code around it
//! does not affect the bug.
//!
//! ```toml
//! ["loom::lock::two_threads_exclude_each_other"]
//! lock-relaxed = { at = "Lock::lock", weaken = "swap" }
//! unlock-early = { at = "Lock::unlock", find = "$a; self.free();", replace = "self.free(); $a;" }
//! ```
//!
//! `at` is the path of an item, in which exactly one place must match.
//!
//! | operator | change |
//! |---|---|
//! | `weaken = "call"` | the first ordering in that call becomes `Relaxed` |
//! | `drop = "tokens"` | removes the statement |
//! | `negate = "tokens"` | negates the expression, with its arguments if it is a call |
//! | `never = "tokens"` | the condition becomes `false` |
//! | `find`, `replace` | replaces tokens; `$name` stands for balanced tokens |

mod catch;
mod tokens;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use crate::mutants::{Form, Item, Mutation, Outline, Source, lines, sources};
use crate::sample::Sample;
use crate::working_copy::{self, WorkingCopy};
use crate::{Result, cargo, files};
pub(crate) use catch::Planted;
use tokens::{Pattern, Token, end_of_group, flat, stream};

/// Every package with a table.
pub(crate) const PACKAGES: [&str; 7] = [
    "punctual-core",
    "punctual-sync",
    "punctual-kernel",
    "punctual-trace",
    "punctual-cli",
    "punctual-analysis",
    "punctual-bridge",
];

/// A bug, and the test that must detect it. The change is described by keys until it is planted.
#[derive(Debug)]
pub(crate) struct Seed<C = Mutation> {
    pub(crate) name: String,
    test: String,
    change: C,
}

impl<C> Seed<C> {
    /// Returns the target and, within it, the test.
    pub(crate) fn test(&self) -> (&str, &str) {
        self.test.split_once("::").expect("was checked when the table was read")
    }
}

/// The bugs of a package as its table describes them.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) package: &'static str,
    /// The directories of the sources, relative to the package.
    parts: &'static [&'static str],
    path: PathBuf,
    pub(crate) seeds: Vec<Seed<Keys>>,
}

impl Table {
    /// Returns the table of a package.
    pub(crate) fn of(package: &'static str) -> Result<Self> {
        // Their tests also exercise parts of the other packages.
        let parts: &[_] = match package {
            "punctual-cli" => &["", "../punctual-trace", "../punctual-trace-report"],
            "punctual-trace" => &["", "../punctual-trace-report"],
            _ => &[""],
        };
        let table = Self::read(package, parts, crates().join(package).join("tests/seeds.toml"))?;
        let targets = working_copy::test_targets(package)?;
        for seed in &table.seeds {
            let (name, (target, _)) = (&seed.name, seed.test());
            if target != "lib" && !targets.iter().any(|known| known == target) {
                return Err(format!("{package}: {name}: `{target}` is no test target of the package").into());
            }
        }
        Ok(table)
    }

    /// Returns the seeds in a table of a package, or of other packages given by paths relative to
    /// it.
    pub(crate) fn read(package: &'static str, parts: &'static [&'static str], path: PathBuf) -> Result<Self> {
        let seeds = parse(&files::read(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { package, parts, path, seeds })
    }

    /// Keeps the seeds of the sample that have one of these names; without names, all of the
    /// sample.
    pub(crate) fn choose(&mut self, names: &[String], sample: Option<Sample>) {
        self.seeds.retain(|seed| names.is_empty() || names.contains(&seed.name));
        self.seeds.retain(|seed| sample.is_none_or(|sample| sample.takes(&seed.name)));
    }

    /// Finds the places of all seeds.
    pub(crate) fn plant(self) -> Result<Seeds> {
        let Self { package, parts, path, seeds } = self;
        let mut all = Vec::new();
        for part in parts {
            let mut of_part = sources(&crates().join(package).join(part))?;
            let prefix = if part.is_empty() { String::new() } else { format!("{part}/") };
            of_part.iter_mut().for_each(|source| source.file.insert_str(0, &prefix));
            all.append(&mut of_part);
        }
        let seeds =
            plant_all(package, &all, seeds).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Seeds { package, sources: all, seeds })
    }
}

/// The sources of a package and its bugs, every one of which can be planted.
#[derive(Debug)]
pub(crate) struct Seeds {
    pub(crate) package: &'static str,
    pub(crate) sources: Vec<Source>,
    pub(crate) seeds: Vec<Seed>,
}

impl Seeds {
    /// Plants one seed alone during `build`.
    pub(crate) fn alone<T>(
        &self,
        seed: &Seed,
        copy: &WorkingCopy,
        build: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let file = &seed.change.file;
        let source = self.sources.iter().find(|source| source.file == *file).expect("it was planted there");
        copy.write(self.package, file, &seed.change.apply(&source.text))?;
        let built = build();
        copy.write(self.package, file, &source.text)?;
        built.map_err(|error| format!("{}: {error}", seed.name).into())
    }
}

fn crates() -> PathBuf {
    cargo::root().join("crates")
}

/// Requires each of these names to be that of a seed.
pub(crate) fn check_names<'a>(names: &[String], tables: impl IntoIterator<Item = &'a Table>) -> Result {
    let known: BTreeSet<_> =
        tables.into_iter().flat_map(|table| &table.seeds).map(|seed| &seed.name).collect();
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(format!("no seed is named `{name}`").into()),
        None => Ok(()),
    }
}

/// A source, and the elements that a seed may refer to. Most sources have no seed, so both are
/// found when a seed needs them.
struct Text<'a> {
    source: &'a Source,
    parsed: OnceCell<(Vec<Token>, Outline)>,
}

impl<'a> Text<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, parsed: OnceCell::new() }
    }

    fn parsed(&self) -> &(Vec<Token>, Outline) {
        self.parsed.get_or_init(|| {
            let stream = stream(&self.source.text).expect("the compiler accepts the sources");
            let syntax = syn::parse2(stream.clone()).expect("the compiler accepts the sources");
            let Source { module, text, .. } = self.source;
            (flat(stream), Outline::new(module, text.len(), &syntax))
        })
    }

    fn tokens(&self) -> &[Token] {
        &self.parsed().0
    }

    fn outline(&self) -> &Outline {
        &self.parsed().1
    }

    /// Returns whether each name of the path occurs in the source, as in every source of the item.
    fn has_names(&self, path: &str) -> bool {
        let Source { module, text, .. } = self.source;
        path.split("::").all(|name| module.iter().any(|module| module == name) || text.contains(name))
    }
}

/// A place in a source.
struct Place<'a> {
    text: &'a Text<'a>,
    item: &'a Item,
    /// The tokens of the item.
    tokens: &'a [Token],
}

/// The bytes to replace, and their replacement.
type Change = (Range<usize>, String);

/// The keys of a seed, which describe its place and its change.
type Keys = BTreeMap<String, String>;

/// Returns the seeds in the text of a table.
fn parse(table: &str) -> Result<Vec<Seed<Keys>>> {
    // By the test, then by the name of the seed.
    let table: BTreeMap<String, BTreeMap<String, Keys>> = toml::from_str(table)?;
    let mut names = BTreeSet::new();
    let mut seeds = Vec::new();
    for (test, group) in table {
        if !test.contains("::") {
            return Err(format!("`{test}` is no test: write target::test, or lib::path::test").into());
        }
        for (name, change) in group {
            if !names.insert(name.clone()) {
                return Err(format!("two seeds are named `{name}`").into());
            }
            seeds.push(Seed { name, test: test.clone(), change });
        }
    }
    Ok(seeds)
}

/// Returns the seeds with their changes to these sources.
fn plant_all(package: &'static str, sources: &[Source], seeds: Vec<Seed<Keys>>) -> Result<Vec<Seed>> {
    let texts: Vec<_> = sources.iter().map(Text::new).collect();
    let (mut planted, mut errors) = (Vec::new(), Vec::new());
    for Seed { name, test, change } in seeds {
        match plant(package, &texts, change) {
            Ok(change) => planted.push(Seed { name, test, change }),
            Err(error) => errors.push(format!("{name}: {error}")),
        }
    }
    if errors.is_empty() { Ok(planted) } else { Err(errors.join("\n").into()) }
}

/// Returns the change that a seed makes.
fn plant(package: &'static str, texts: &[Text], mut keys: Keys) -> Result<Mutation> {
    let at = keys.remove("at").ok_or("it has no `at`, the path of an item")?;
    let is_at = |item: &&Item| {
        let before = item.path.strip_suffix(&at);
        before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
    };
    let positions: Vec<_> = texts
        .iter()
        .filter(|text| text.has_names(&at))
        .flat_map(|text| text.outline().items.iter().filter(is_at).map(move |item| Place::new(text, item)))
        .collect();
    if positions.is_empty() {
        return Err(format!("no item has the path `{at}`").into());
    }
    let mut changes = Vec::new();
    for place in &positions {
        changes.extend(place.changes(&keys)?.into_iter().map(|change| (place, change)));
    }
    match changes.as_slice() {
        [(place, change)] => place.mutation(package, change),
        [] => Err(format!("`{at}` does not contain the text to change").into()),
        _ => {
            Err(format!("`{at}` contains the text to change {} times: give more context", changes.len())
                .into())
        }
    }
}

impl<'a> Place<'a> {
    fn new(text: &'a Text<'a>, item: &'a Item) -> Self {
        let tokens = text.tokens();
        let first = tokens.partition_point(|token| token.range.start < item.range.start);
        let end = tokens.partition_point(|token| token.range.start < item.range.end);
        Self { text, item, tokens: &tokens[first..end] }
    }

    /// Returns the changes at this place that match the keys of a seed.
    fn changes(&self, keys: &Keys) -> Result<Vec<Change>> {
        let keys: Vec<(&str, &str)> =
            keys.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let outline = self.text.outline();
        let mut changes = match keys[..] {
            [("find", find), ("replace", replacement)] => {
                let found = Pattern::new(find)?.find(self.tokens).into_iter();
                let fill = |at: &tokens::Match| at.fill(replacement, &self.text.source.text, self.tokens);
                found.map(|at| (self.bytes(&at.tokens), fill(&at))).collect()
            }
            [("weaken", call)] => self.weakened(call)?,
            [("drop", what)] => {
                let statement = |place: Range<usize>| outline.statement(&place);
                let dropped = |(range, is_value)| (range, if is_value { "()" } else { "" }.to_owned());
                self.find(what)?.map(|at| self.bytes(&at)).filter_map(statement).map(dropped).collect()
            }
            [("negate", what)] => {
                let call = |at: Range<usize>| at.start..end_of_group(self.tokens, at.end).unwrap_or(at.end);
                let negated =
                    |range: Range<usize>| (range.clone(), format!("!({})", &self.text.source.text[range]));
                self.find(what)?.map(call).map(|at| negated(self.bytes(&at))).collect()
            }
            [("never", what)] => {
                let condition = |place: Range<usize>| outline.condition(&place);
                let never = |range| (range, "false".to_owned());
                self.find(what)?.map(|at| self.bytes(&at)).filter_map(condition).map(never).collect()
            }
            _ => {
                return Err(
                    "it has none of `find` with `replace`, `weaken`, `drop`, `negate`, `never`".into()
                );
            }
        };
        changes.sort_by_key(|(range, _): &Change| (range.start, range.end));
        changes.dedup();
        Ok(changes)
    }

    /// Returns the positions of these tokens.
    fn find(&self, what: &str) -> Result<impl Iterator<Item = Range<usize>>> {
        Ok(Pattern::new(what)?.find(self.tokens).into_iter().map(|at| at.tokens))
    }

    /// Relaxes the first ordering in each of these calls.
    fn weakened(&self, call: &str) -> Result<Vec<Change>> {
        let ordering = Pattern::new("Ordering::")?;
        let relaxed = |at: Range<usize>| {
            let end = end_of_group(self.tokens, at.end)?;
            let first =
                ordering.find(&self.tokens[..end]).into_iter().find(|found| found.tokens.start > at.end)?;
            let order = &self.tokens[first.tokens.end];
            (order.text != "Relaxed").then(|| (order.range.clone(), "Relaxed".to_owned()))
        };
        Ok(self.find(call)?.filter_map(relaxed).collect())
    }

    fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        self.tokens[tokens.start].range.start..self.tokens[tokens.end - 1].range.end
    }

    /// Returns the change, applied to the smallest enclosing block, so that both versions can be in
    /// one build.
    fn mutation(&self, package: &'static str, (range, replacement): &Change) -> Result<Mutation> {
        let text = &self.text.source.text;
        if text[range.clone()].split_whitespace().eq(replacement.split_whitespace()) {
            return Err("it replaces a text by the same".into());
        }
        let block = self.text.outline().block(range).filter(|_| !self.item.is_constant);
        let (whole, mutated) = match &block {
            Some(block) => (
                block.clone(),
                [&text[block.start..range.start], replacement, &text[range.end..block.end]].concat(),
            ),
            None => (range.clone(), replacement.clone()),
        };
        Ok(Mutation {
            package,
            file: self.text.source.file.clone(),
            function: self.item.path.clone(),
            line: text[..range.start].matches('\n').count() + 1,
            range: whole,
            replacement: mutated,
            form: Form::Statement,
            constant: block.is_none(),
            original: lines(text, range, None),
            mutated: lines(text, range, Some(replacement)),
            ordinal: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loom::{cpus, in_parallel};

    #[test]
    fn plants_every_seed() {
        let has_seeds = |_, package: &&'static str| Ok(!Table::of(package)?.plant()?.seeds.is_empty());
        assert_eq!(in_parallel(&PACKAGES, cpus(), has_seeds).unwrap(), 0);
    }

    const SOURCE: &str = "
        impl<T> Lock<T> {
            pub fn lock(&self) -> bool {
                while self.word.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {}
                self.count(); // why
                if self.is_open() && !self.is_held() { return true; }
                wake(self.word.load(Ordering::Relaxed))
            }
        }
        const LIMIT: u32 = 1 << 4;
        fn count() { count(); count(); }
    ";

    /// Returns the source with a seed of these keys, on one line.
    fn planted(keys: &str) -> Result<String> {
        let module = vec!["lock".to_owned()];
        let source = Source { file: "src/lock.rs".to_owned(), module, text: SOURCE.to_owned() };
        let seeds = parse(&format!("[\"loom::test\"]\nseed = {{ {keys} }}"))?;
        let changed = plant_all("p", &[source], seeds)?[0].change.apply(SOURCE);
        assert!(syn::parse_file(&changed).is_ok(), "{changed}");
        Ok(changed.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn applies_each_operator() {
        for (keys, expected) in [
            ("weaken = 'compare_exchange'", "(0, 1, Ordering::Relaxed, Ordering::Acquire)"),
            ("drop = 'self.count'", "{} // why if"),
            ("drop = 'wake'", "return true; } () }"),
            ("negate = 'self.is_open'", "if !(self.is_open()) && !self.is_held()"),
            ("never = 'is_held'", "if self.is_open() && false {"),
            ("never = 'is_err'", "while false {}"),
            ("find = 'if $a && $b { $c }', replace = 'if $b { $c }'", "if !self.is_held() { return true; }"),
        ] {
            let changed = planted(&format!("at = 'Lock::lock', {keys}")).unwrap();
            assert!(changed.contains(expected), "{keys}: {changed}");
        }
        let constant = planted("at = 'lock::LIMIT', find = '<< 4', replace = '<< 5'").unwrap();
        assert!(constant.contains("1 << 5;"), "{constant}");
    }

    #[test]
    fn rejects_seed_without_unique_place() {
        for (keys, reason) in [
            ("at = 'Lock::unlock', drop = 'wake'", "no item has the path"),
            ("at = 'ock::lock', drop = 'wake'", "no item has the path"),
            ("at = 'Lock::lock', weaken = 'load'", "does not contain"),
            ("at = 'Lock::lock', drop = 'sleep'", "does not contain"),
            ("at = 'lock::count', drop = 'count()'", "2 times"),
            ("at = 'Lock::lock', find = 'is_held', replace = 'is_held'", "by the same"),
            ("at = 'Lock::lock', find = 'is_held'", "it has none of"),
            ("at = 'Lock::lock', weaken = 'load', drop = 'wake'", "it has none of"),
            ("drop = 'wake'", "it has no `at`"),
        ] {
            let error = planted(keys).unwrap_err().to_string();
            assert!(error.contains(reason), "{keys}: {error}");
        }
    }

    #[test]
    fn rejects_incomplete_table() {
        let error = |table: &str| parse(table).unwrap_err().to_string();
        assert!(error("[test]\na = { at = 'b', drop = 'c' }").contains("is no test"));
        assert!(error("[test]\na = 'b'").contains("invalid type"));
        assert!(Table::read("p", &[], "no/table".into()).unwrap_err().to_string().starts_with("no/table: "));
    }
}
