//! Seeded bugs: each is a replacement of a piece of a package's source, with the test that has to find it.
//!
//! A model that passes may simply not look. So each package has a table `tests/seeds.toml` of the bugs that its
//! protocols are in danger of, and `cargo xtask loom` puts one after the other into a copy.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::Result;

/// A bug, and the test that has to find it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seed {
    pub(crate) name: String,
    /// Relative to the package.
    pub(crate) file: String,
    find: String,
    replace: String,
    test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableOfSeeds {
    seed: Vec<Seed>,
}

impl Seed {
    /// The target and, within it, the test.
    pub(crate) fn test(&self) -> (&str, &str) {
        self.test.split_once("::").expect("was looked at when the table was read")
    }

    /// The text of the file with the bug in it.
    pub(crate) fn plant(&self, text: &str) -> Result<String> {
        let Self { name, file, find, .. } = self;
        match text.matches(find.as_str()).count() {
            1 => Ok(text.replacen(find.as_str(), &self.replace, 1)),
            0 => Err(format!("{name}: {file} no longer has the text to replace:\n{find}").into()),
            n => {
                Err(format!("{name}: {file} has the text to replace {n} times; make it longer:\n{find}")
                    .into())
            }
        }
    }
}

/// The bugs of the package in this directory, every one of which can be planted.
pub(crate) fn of(package: &Path) -> Result<Vec<Seed>> {
    in_table(&package.join("tests/seeds.toml"), package)
}

/// The bugs of a table whose files are relative to `base`, every one of which can be planted.
pub(crate) fn in_table(path: &Path, base: &Path) -> Result<Vec<Seed>> {
    let table = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let seeds = parse(&table).map_err(|error| format!("{}: {error}", path.display()))?;
    for seed in &seeds {
        seed.plant(&read(base, &seed.file)?)?;
    }
    Ok(seeds)
}

/// The text of a file of the package in this directory.
pub(crate) fn read(package: &Path, file: &str) -> Result<String> {
    let path = package.join(file);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn parse(table: &str) -> Result<Vec<Seed>> {
    let TableOfSeeds { seed: seeds } = toml::from_str(table)?;
    for (at, seed) in seeds.iter().enumerate() {
        let Seed { name, test, .. } = seed;
        if seeds[..at].iter().any(|other| other.name == *name) {
            return Err(format!("two bugs are named `{name}`").into());
        }
        if !test.contains("::") {
            return Err(format!("{name}: `{test}` is no test: write target::test, or lib::path::test").into());
        }
        if seed.find == seed.replace {
            return Err(format!("{name}: it replaces a text by the same").into());
        }
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        [[seed]]
        name = "lock-relaxed"
        file = "src/lock.rs"
        find = '''swap(1, Acquire)'''
        replace = '''swap(1, Relaxed)'''
        test = "loom_lock::two_threads_exclude_each_other"
    "#;

    #[test]
    fn reads_a_table() {
        let seeds = parse(TABLE).unwrap();
        assert_eq!(seeds[0].name, "lock-relaxed");
        assert_eq!(seeds[0].test(), ("loom_lock", "two_threads_exclude_each_other"));
        let unit = parse(&TABLE.replace("loom_lock::", "lib::lock::tests::")).unwrap();
        assert_eq!(unit[0].test(), ("lib", "lock::tests::two_threads_exclude_each_other"));
    }

    #[test]
    fn refuses_a_table_that_does_not_say_enough() {
        assert!(parse(&format!("{TABLE}{TABLE}")).unwrap_err().to_string().contains("two bugs"));
        assert!(parse(&TABLE.replace("::two", "_two")).unwrap_err().to_string().contains("is no test"));
        assert!(parse(&TABLE.replace("Relaxed", "Acquire")).is_err());
        assert!(parse(&TABLE.replace("find", "fnd")).is_err());
    }

    #[test]
    fn refuses_package_without_table() {
        assert!(
            of(Path::new("no/package")).unwrap_err().to_string().starts_with("no/package/tests/seeds.toml: ")
        );
    }

    #[test]
    fn refuses_text_that_does_not_occur_exactly_once() {
        let seed = &parse(TABLE).unwrap()[0];
        assert_eq!(seed.plant("a.swap(1, Acquire);").unwrap(), "a.swap(1, Relaxed);");
        assert!(seed.plant("a.swap(0, Acquire);").unwrap_err().to_string().contains("no longer"));
        let twice = seed.plant("a.swap(1, Acquire); b.swap(1, Acquire);").unwrap_err().to_string();
        assert!(twice.contains("2 times"), "{twice}");
    }
}
