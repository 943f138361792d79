use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tempfile::TempDir;

use super::*;

fn store(scratch: &TempDir) -> Store {
    Store::at(scratch.path().join("run"))
}

/// Settings in memory. The process that uses them is killed at the access, read or write, of that
/// number: before it, or right after it.
#[derive(Debug, Clone, Default)]
struct Memory {
    values: BTreeMap<Setting, String>,
    accesses: Cell<usize>,
    killed: Option<(usize, bool)>,
    refuses: Option<Setting>,
    /// Stores other values than those written.
    rewrites: bool,
}

fn file(path: &str) -> Setting {
    Setting::File(path.into())
}

impl Memory {
    fn new() -> Self {
        let thread = Setting::Policy { thread: 7, started: 1 };
        let values = [
            (file("/proc/irq/1/smp_affinity_list"), "0-3"),
            (file("/sys/workqueue/cpumask"), "f"),
            (file("/proc/sys/kernel/timer_migration"), "1"),
            (thread, "other 0"),
        ];
        Self {
            values: values.into_iter().map(|(setting, value)| (setting, value.into())).collect(),
            ..Self::default()
        }
    }

    /// Returns the value that is stored when `value` is written.
    fn stored(&self, setting: &Setting, value: &str) -> String {
        match (self.rewrites, setting, value) {
            (true, Setting::File(path), "0-2") if path.ends_with("smp_affinity_list") => "0-1".into(),
            (true, Setting::File(path), "7") if path.ends_with("cpumask") => "00000003".into(),
            (true, Setting::File(path), "0") if path.ends_with("timer_migration") => "2".into(),
            (true, Setting::File(path), "1") if path.ends_with("timer_migration") => "3".into(),
            _ => value.into(),
        }
    }

    /// Returns the values after everything was restored.
    fn restored(&self) -> BTreeMap<Setting, String> {
        let stored = |(setting, value): (&Setting, &String)| (setting.clone(), self.stored(setting, value));
        self.values.iter().map(stored).collect()
    }

    /// Runs `access`, and dies before or after it if `killed` has its number.
    fn access<T>(&self, access: impl FnOnce() -> T) -> T {
        let dies = self.killed.filter(|&(at, _)| at == self.accesses.get()).map(|(_, is_done)| is_done);
        self.accesses.set(self.accesses.get() + 1);
        if dies == Some(false) {
            std::panic::resume_unwind(Box::new("killed"));
        }
        let done = access();
        if dies.is_some() {
            std::panic::resume_unwind(Box::new("killed"));
        }
        done
    }

    fn changes() -> Vec<Change> {
        let thread = Setting::Policy { thread: 7, started: 1 };
        vec![
            Change::file("/proc/irq/1/smp_affinity_list", "0-2"),
            Change::file("/sys/workqueue/cpumask", "7"),
            Change::file("/proc/sys/kernel/timer_migration", "0"),
            Change { setting: thread, new: "fifo 50".into() },
        ]
    }
}

impl Settings for Memory {
    fn get(&self, setting: &Setting) -> io::Result<String> {
        self.access(|| self.values.get(setting).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn set(&mut self, setting: &Setting, value: &str) -> io::Result<()> {
        if self.refuses.as_ref() == Some(setting) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let stored = self.stored(setting, value);
        let mut values = std::mem::take(&mut self.values);
        let written = catch_unwind(AssertUnwindSafe(|| {
            self.access(|| values.insert(setting.clone(), stored));
        }));
        self.values = values;
        written.unwrap_or_else(|killed| std::panic::resume_unwind(killed));
        Ok(())
    }
}

/// Returns the journal: its owner has ended when it is dropped.
fn apply_all(store: &Store, memory: &mut Memory) -> Journal {
    let mut journal = store.begin("x", "CPU 3", false, memory).unwrap();
    for change in Memory::changes() {
        journal.apply(&change, memory).unwrap();
    }
    journal
}

/// A machine that stores the values written, and a machine that stores others.
fn machines() -> [Memory; 2] {
    [false, true].map(|rewrites| Memory { rewrites, ..Memory::new() })
}

/// Counts the accesses of `run` to the settings of a copy of `memory`.
fn accesses(memory: &Memory, run: impl FnOnce(&mut Memory)) -> usize {
    let mut memory = Memory { accesses: Cell::new(0), killed: None, ..memory.clone() };
    run(&mut memory);
    memory.accesses.get()
}

#[test]
fn restores_everything_after_kill_at_any_access() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(&scratch);
    for before in machines() {
        let count = accesses(&before, |memory| drop(apply_all(&store, memory)));
        store.undo("x", &mut before.clone()).unwrap();
        assert_eq!(count, 3 * Memory::changes().len());
        for (at, is_done) in (0..count).flat_map(|at| [(at, false), (at, true)]) {
            let mut memory = Memory { killed: Some((at, is_done)), ..before.clone() };
            assert!(catch_unwind(AssertUnwindSafe(|| apply_all(&store, &mut memory))).is_err());
            // The old value is written only where it was overwritten.
            let expected = |(setting, value): (&Setting, &String)| match before.values[setting] == *value {
                true => (setting.clone(), value.clone()),
                false => (setting.clone(), before.stored(setting, &before.values[setting])),
            };
            let expected: BTreeMap<_, _> = memory.values.iter().map(expected).collect();
            memory.killed = None;
            let recovered = store.recover(&mut memory).unwrap();
            assert_eq!(recovered.len(), 1);
            assert!(recovered[0].1.left.is_empty(), "killed at access {at}: {recovered:?}");
            assert_eq!(memory.values, expected, "killed at access {at}");
            assert!(store.held().unwrap().is_empty());
        }
    }
}

#[test]
fn restores_everything_after_kills_while_undoing() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(&scratch);
    for before in machines() {
        let mut changed = before.clone();
        drop(apply_all(&store, &mut changed));
        let journal = fs::read(store.path("x")).unwrap();
        let count = accesses(&changed, |memory| drop(store.undo("x", memory).unwrap()));
        assert_eq!(count, 2 * Memory::changes().len());
        for (at, is_done) in (0..count).flat_map(|at| [(at, false), (at, true)]) {
            fs::write(store.path("x"), &journal).unwrap();
            let mut memory = changed.clone();
            (memory.accesses, memory.killed) = (Cell::new(0), Some((at, is_done)));
            assert!(catch_unwind(AssertUnwindSafe(|| store.undo("x", &mut memory))).is_err());
            memory.killed = None;
            let undone = store.undo("x", &mut memory).unwrap().unwrap();
            assert!(undone.left.is_empty(), "killed at access {at}: {undone:?}");
            assert_eq!(memory.values, before.restored(), "killed at access {at}");
        }
    }
}

#[test]
fn keeps_settings_changed_by_others() {
    let scratch = tempfile::tempdir().unwrap();
    let mut memory = Memory::new();
    drop(apply_all(&store(&scratch), &mut memory));
    memory.values.insert(file("/sys/workqueue/cpumask"), "3".into());
    memory.values.remove(&Setting::Policy { thread: 7, started: 1 });
    let undone = store(&scratch).undo("x", &mut memory).unwrap().unwrap();
    let why: Vec<&str> = undone.left.iter().map(|left| &*left.why).collect();
    assert_eq!(
        (undone.restored, why),
        (2, vec!["it no longer exists", "it was set to `0-1` in the meantime"])
    );
    assert_eq!(memory.values[&file("/sys/workqueue/cpumask")], "3");
    assert!(store(&scratch).held().unwrap().is_empty());
}

#[test]
fn keeps_journal_while_undo_is_possible() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    drop(apply_all(&store, &mut memory));
    memory.refuses = Some(file("/sys/workqueue/cpumask"));
    assert_eq!(store.undo("x", &mut memory).unwrap().unwrap().left.len(), 1);
    memory.refuses = None;
    assert!(store.undo("x", &mut memory).unwrap().unwrap().left.is_empty());
    assert_eq!(memory.values, Memory::new().values);
    assert!(store.undo("x", &mut memory).unwrap().is_none());
}

#[test]
fn rejects_second_owner_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    let journal = apply_all(&store, &mut memory);
    let refused = store.begin("x", "CPU 3", false, &mut memory).unwrap_err().to_string();
    assert!(refused.contains(&format!("({}), which is running", std::process::id())), "{refused}");
    assert!(store.held().unwrap()[0].is_running);
    assert!(store.recover(&mut memory).unwrap().is_empty());
    drop(journal);
    // If it was to outlast its owner, it does not become free when the owner ends.
    store.undo("x", &mut memory).unwrap();
    drop(store.begin("x", "CPU 3", true, &mut memory).unwrap());
    let refused = store.begin("x", "CPU 3", false, &mut memory).unwrap_err().to_string();
    assert!(refused.ends_with("undo that first"), "{refused}");
}

#[test]
fn waits_for_lock_with_a_limit_and_names_holder() {
    let scratch = tempfile::tempdir().unwrap();
    let store = Store { lock_timeout: Duration::ZERO, ..store(&scratch) };
    let _lock = store.lock(&store.open().unwrap()).unwrap();
    let error = store.begin("cpus", "the isolation of CPU 3", false, &mut Memory::new()).unwrap_err();
    assert!(
        matches!(&error, JournalError::Locked { holder: Some(process), .. } if *process == std::process::id())
    );
    let process = std::process::id();
    assert!(error.to_string().contains(&format!("lock within 0 s: process {process} holds")), "{error}");
    assert!(matches!(store.undo("cpus", &mut Memory::new()), Ok(None)), "there is nothing to undo");
}

#[test]
fn takes_over_from_dead_owner_after_undo() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    drop(apply_all(&store, &mut memory));
    drop(store.begin("x", "CPU 3", false, &mut memory).unwrap());
    assert_eq!(memory.values, Memory::new().values);
}

#[test]
fn ignores_journal_of_another_boot() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    drop(apply_all(&store, &mut memory));
    let path = store.path("x");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace(&boot(), "another")).unwrap();
    let changed = memory.values.clone();
    assert!(store.held().unwrap().is_empty());
    assert_eq!(store.undo("x", &mut memory).unwrap().unwrap().restored, 0);
    assert_eq!(memory.values, changed);
    assert!(!path.exists());
}

#[test]
fn rejects_damaged_journal_but_accepts_torn_end() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    drop(apply_all(&store, &mut memory));
    let path = store.path("x");
    let whole = fs::read_to_string(&path).unwrap();
    let changed = memory.values.clone();
    for (damage, line) in [(whole.replacen("\"old\"", "\"odd\"", 1), 2), (whole.replacen('{', "", 1), 1)] {
        fs::write(&path, damage).unwrap();
        let error = store.undo("x", &mut memory).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { line: at, .. } if at == line), "{error}");
        assert_eq!(memory.values, changed);
    }
    // The change of the last line was not made.
    let torn = whole.trim_end_matches(['\n', '}']);
    fs::write(&path, torn).unwrap();
    memory.values.insert(Setting::Policy { thread: 7, started: 1 }, "other 0".into());
    assert!(store.undo("x", &mut memory).unwrap().unwrap().left.is_empty());
    assert_eq!(memory.values, Memory::new().values);
    fs::write(&path, "").unwrap();
    assert!(store.undo("x", &mut memory).unwrap().is_none());
}

#[test]
fn list_keeps_journal_that_is_being_begun() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    drop(store.begin("x", "CPU 3", false, &mut memory).unwrap());
    // Its owner is about to write the head, and then makes changes.
    fs::write(store.path("x"), "").unwrap();
    assert!(store.held().unwrap().is_empty() && store.recover(&mut memory).unwrap().is_empty());
    assert!(store.path("x").exists());
    drop(store.begin("x", "CPU 3", false, &mut memory).expect("the owner was killed"));
    assert_eq!(store.held().unwrap().len(), 1);
}

#[test]
fn rejects_journals_writable_by_others() {
    use std::fs::Permissions;
    let scratch = tempfile::tempdir().unwrap();
    let (mut memory, store) = (Memory::new(), store(&scratch));
    drop(apply_all(&store, &mut memory));
    fs::set_permissions(store.path("x"), Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(store.undo("x", &mut memory), Err(JournalError::Untrusted { .. })));
}

#[test]
fn undoes_values_normalized_by_the_kernel() {
    /// Ignores CPU 9.
    struct Clamping(Memory);
    impl Settings for Clamping {
        fn get(&self, setting: &Setting) -> io::Result<String> {
            self.0.get(setting)
        }
        fn set(&mut self, setting: &Setting, value: &str) -> io::Result<()> {
            self.0.set(setting, &value.replace(",9", ""))
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let (mut settings, store) = (Clamping(Memory::new()), store(&scratch));
    let mut journal = store.begin("x", "CPU 3", false, &mut settings).unwrap();
    journal.apply(&Change::file("/proc/irq/1/smp_affinity_list", "0-2,9"), &mut settings).unwrap();
    assert!(store.undo("x", &mut settings).unwrap().unwrap().left.is_empty());
    assert_eq!(settings.0.values, Memory::new().values);
}
