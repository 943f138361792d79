//! The watched app: found, opened, and found again after a restart.

use super::figures::Since;
use super::find::{Apps, Found, Relation};
use super::memory::{Memory, Snapshot, Unreadable};

/// The app that is watched, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// The user's selection: the name of the app or of its program, or its process ID.
    wanted: Option<String>,
    /// The name and the user of the app that was watched last.
    before: Option<(String, u32)>,
    memory: Option<Memory>,
    since: Since,
}

impl Chosen {
    pub(crate) fn new(wanted: Option<String>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Returns the memory of the app, while there is one.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    pub(crate) fn since(&self) -> &Since {
        &self.since
    }

    pub(crate) fn since_mut(&mut self) -> &mut Since {
        &mut self.since
    }

    /// Reads the app's figures, or those of an app that has replaced it.
    ///
    /// # Errors
    /// Returns the reason why there are no figures, for people.
    pub(crate) fn snapshot(&mut self) -> Result<Snapshot, String> {
        let Some(memory) = &mut self.memory else {
            self.open()?;
            return self.read_open();
        };
        match memory.snapshot() {
            Err(why) => {
                let Found { app, process, .. } = memory.found().clone();
                self.leave();
                // It may have been restarted.
                match self.open() {
                    Ok(()) => self.read_open(),
                    Err(_) => Err(format!("{app} (process {process}): {why}")),
                }
            }
            snapshot => snapshot.map_err(|why| why.to_string()),
        }
    }

    /// Reads the figures of the app that was just opened.
    fn read_open(&mut self) -> Result<Snapshot, String> {
        let memory = self.memory.as_mut().ok_or("no app is running")?;
        let snapshot = memory.snapshot().map_err(|why| why.to_string());
        if snapshot.is_err() {
            self.leave();
        }
        snapshot
    }

    /// Switches to the next app, by process ID; returns the reason if it cannot.
    pub(crate) fn next(&mut self) -> Result<(), String> {
        let apps = Apps::running();
        let now = self.memory.as_ref().map(|memory| memory.found().id);
        let at = apps.found.iter().position(|found| Some(found.id) == now).map_or(0, |at| at + 1);
        let others = (at..apps.found.len()).chain(0..at.min(apps.found.len()));
        let mut others = others.map(|index| &apps.found[index]).filter(|found| Some(found.id) != now);
        let other = others.next().ok_or("there is no other app")?;
        self.wanted = None;
        self.enter(other).map_err(|why| describe_refusal(other, &why))
    }

    fn leave(&mut self) {
        self.memory = None;
        self.since = Since::default();
    }

    fn enter(&mut self, found: &Found) -> Result<(), Unreadable> {
        let memory = Memory::open(found)?;
        self.before = Some((found.app.clone(), found.user));
        self.since = Since::default();
        self.memory = Some(memory);
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        let apps = Apps::running();
        let mut wanted = match &self.wanted {
            Some(wanted) => apps.named(wanted),
            None => apps.found.iter().collect(),
        };
        // Another user can run an app of the same name.
        let is_before = |found: &Found| {
            self.before.as_ref().is_some_and(|(app, user)| (app, user) == (&found.app, &found.user))
        };
        wanted.sort_by_key(|found| !is_before(found));
        if let (Some(name), Some(first)) = (&self.wanted, wanted.first())
            && !is_before(first)
        {
            unambiguous(name, &wanted)?;
        }
        let mut refused = None;
        for found in wanted {
            match self.enter(found) {
                Ok(()) => return Ok(()),
                Err(Unreadable::Gone | Unreadable::NotYet) => {}
                Err(why) => refused = refused.or(Some(describe_refusal(found, &why))),
            }
        }
        Err(refused.unwrap_or_else(|| none(&apps, self.wanted.as_deref())))
    }
}

fn describe_refusal(found: &Found, why: &Unreadable) -> String {
    format!("{} (process {}): {why}", found.app, found.process)
}

/// Fails if several other users run an app with this name.
fn unambiguous(name: &str, apps: &[&Found]) -> Result<(), String> {
    let is_other = apps.iter().all(|found| found.relation() == Relation::Other);
    if !is_other || apps.iter().all(|found| found.user == apps[0].user) {
        return Ok(());
    }
    let each = apps.iter().map(|found| format!("{} (user {})", found.process, found.user_name()));
    let each = each.collect::<Vec<_>>().join(", ");
    Err(format!("several users run an app called {name}; give one of the processes {each}"))
}

/// Returns the reason why there is no app.
fn none(apps: &Apps, wanted: Option<&str>) -> String {
    let mut text = match wanted {
        Some(wanted) => format!("no running app, program or process is called {wanted}"),
        None => "no app is running that shows its figures".to_owned(),
    };
    if !apps.found.is_empty() && wanted.is_some() {
        let there = apps.found.iter().map(|found| format!("{} ({})", found.app, found.process));
        text += &format!("; there is {}", there.collect::<Vec<_>>().join(", "));
    } else {
        text += "; start one, without PUNCTUAL_METRICS=0 and not in virtual time";
    }
    if apps.closed > 0 {
        text += &format!(
            "; {} of your processes cannot be read, because they have capabilities that you do not \
             have: run this as root",
            apps.closed
        );
    }
    text
}
