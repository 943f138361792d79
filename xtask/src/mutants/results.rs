//! The result of each mutation, stored so that an interrupted run resumes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::{Result, cargo};

/// The result of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Caught,
    /// A test hung.
    TimedOut,
    Survived,
    /// The compiler rejects it.
    NotBuilt,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) key: String,
    /// Of the package's sources and tests.
    pub(super) digest: u64,
    pub(super) outcome: Outcome,
    /// The test that failed, if one did, and its message.
    pub(super) by: String,
    pub(super) said: String,
    pub(super) seconds: f32,
}

/// The results so far.
pub(super) struct Results {
    file: Mutex<File>,
    earlier: BTreeMap<String, Record>,
}

impl Results {
    /// Opens the file in the target directory. Ignores an incomplete line.
    pub(super) fn open() -> Result<Self> {
        let directory = cargo::target_dir().join("mutants");
        fs::create_dir_all(&directory)?;
        let path = directory.join("results.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
        let earlier = records.map(|record| (record.key.clone(), record)).collect();
        let mut file = File::options().create(true).append(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(Self { file: Mutex::new(file), earlier })
    }

    /// Returns the last result of a mutation.
    pub(super) fn earlier(&self, key: &str) -> Option<&Record> {
        self.earlier.get(key)
    }

    pub(super) fn add(&self, record: &Record) -> Result {
        let line = serde_json::to_string(record)? + "\n";
        Ok(self.file.lock().expect("nothing panics with the file").write_all(line.as_bytes())?)
    }
}

/// Returns a digest that changes with the sources or tests of a package.
pub(super) fn digest(package: &Path) -> Result<u64> {
    let mut hasher = fnv::FnvHasher::default();
    for directory in ["src", "tests"] {
        add(&package.join(directory), &mut hasher)?;
    }
    Ok(hasher.finish())
}

fn add(directory: &Path, hasher: &mut impl Hasher) -> Result {
    let mut paths = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hasher)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            hasher.write(path.as_os_str().as_encoded_bytes());
            hasher.write(&fs::read(&path)?);
        }
    }
    Ok(())
}
