//! `punctual isolate`: takes CPUs from the rest of the system, and gives them back.

pub(crate) mod args;
mod beside;
mod offline;
pub(crate) mod run;
mod verify;

use std::io;
use std::process::Command;

use punctual_isolate::change::{Journal, Live, Store, Undone};
use punctual_isolate::cpus::Cpus;
use punctual_isolate::facts::Machine;
use punctual_isolate::isolate::{JOURNAL, Plan, boot, take};
use punctual_isolate::tree::Tree;
use punctual_report::format::format_counted;

use self::args::{Isolate, What};
use self::beside::Beside;
use crate::output::{message, print};
use crate::parse::numbers;
use crate::status::FINDING;

/// Locations of settings and their journals.
struct Place {
    tree: fn(&Isolate) -> Tree,
    store: Store,
    settings: Live,
}

impl Place {
    fn of(arguments: &Isolate) -> Self {
        let tree = |arguments: &Isolate| match &arguments.root {
            Some(root) => Tree::directory(root),
            None => Tree::system(),
        };
        let (store, settings) = match &arguments.root {
            Some(root) => (Store::at(root.join("run/punctual")), Live::at(root)),
            None => (Store::system(), Live::system()),
        };
        Self { tree, store, settings }
    }

    /// Gives back the CPUs of a killed instance.
    fn recover(&mut self) -> Result<(), String> {
        for (held, undone) in self.store.recover(&mut self.settings).map_err(|error| error.to_string())? {
            message!(
                "given back first: {}, left behind by {} ({}), which was killed",
                held.purpose,
                held.owner.name,
                held.owner.process
            );
            print_undone(&undone);
        }
        Ok(())
    }

    /// Gives CPUs back. Returns the exit code, or the reason why nothing was done.
    fn give_back(&mut self) -> Result<u8, String> {
        let undone = self.store.undo(JOURNAL, &mut self.settings).map_err(|error| error.to_string())?;
        Ok(undone.map_or(0, |undone| print_undone(&undone)))
    }
}

/// CPUs that are taken while another program runs there.
pub(crate) struct IsolatedCpus {
    place: Place,
    plan: Plan,
    beside: Beside,
    /// While it exists, no other process gives the CPUs back.
    _journal: Journal,
}

impl IsolatedCpus {
    /// Takes the CPUs, after giving back those of a killed instance. With `record`, disturbances
    /// are recorded.
    pub(crate) fn take(cpus: &Cpus, record: bool) -> Result<Self, String> {
        let mut place = Place { tree: |_| Tree::system(), store: Store::system(), settings: Live::system() };
        place.recover()?;
        let plan = plan(&Machine::read(Tree::system()), cpus)?;
        let (journal, refused) =
            take(&plan, &place.store, false, &mut place.settings).map_err(|error| error.to_string())?;
        for line in &refused {
            message!("{line}");
        }
        let beside = Beside::begin(&plan, record);
        Ok(Self { place, plan, beside, _journal: journal })
    }

    /// Returns the CPUs that are left for other processes.
    pub(crate) fn others(&self) -> Vec<u32> {
        numbers(&self.plan.others)
    }

    /// Makes a command start there.
    pub(crate) fn enter(&self, command: &mut Command) -> io::Result<()> {
        run::enter(&self.plan, command)
    }

    /// Gives them back, and prints their disturbances. Returns the exit code.
    pub(crate) fn give_back(mut self) -> Result<u8, String> {
        let account = self.beside.end(&self.plan);
        let code = self.place.give_back();
        message!("{account}");
        code
    }
}

pub(crate) fn run(arguments: &Isolate) -> Result<u8, String> {
    let mut place = Place::of(arguments);
    if !matches!(arguments.command, What::Plan(_) | What::Boot(_)) {
        place.recover()?;
    }
    let read = |place: &Place| Machine::read((place.tree)(arguments));
    match &arguments.command {
        What::Plan(which) => {
            print(&plan(&read(&place), &which.cpus)?.text());
            Ok(0)
        }
        What::Boot(which) => {
            let machine = read(&place);
            plan(&machine, &which.cpus)?;
            print(&boot::text(&machine, &which.cpus));
            Ok(0)
        }
        What::Start(which) => {
            let plan = plan(&read(&place), &which.cpus)?;
            let (_journal, refused) =
                take(&plan, &place.store, true, &mut place.settings).map_err(|error| error.to_string())?;
            for line in &refused {
                message!("{line}");
            }
            print(&format!("{} taken; to give it back: punctual isolate stop\n", plan.cpus.named()));
            if let Some(group) = &plan.group {
                print(&format!("to run a command there: echo $$ > {group}/cgroup.procs; exec COMMAND\n"));
            }
            Ok(0)
        }
        What::Status => status(&place),
        What::Stop => {
            let held = place.store.held().map_err(|error| error.to_string())?;
            match held.iter().find(|held| held.name == JOURNAL) {
                None => print("nothing is taken\n"),
                Some(held) if !held.keep => {
                    return Err(format!(
                        "{} belongs to {} ({}), which is running; end that process",
                        held.purpose, held.owner.name, held.owner.process
                    ));
                }
                Some(held) => {
                    let purpose = held.purpose.clone();
                    let code = place.give_back()?;
                    print(&format!("undone: {purpose}\n"));
                    return Ok(code);
                }
            }
            Ok(0)
        }
        What::Run { which, offline: true, heartbeat, grace, command, .. } => {
            let options = punctual_isolate::offline::Options { timeout: *heartbeat, grace: *grace };
            offline::run(&(place.tree)(arguments), &which.cpus, options, command, &mut place)
        }
        What::Run { which, command, no_record, .. } => {
            let plan = plan(&read(&place), &which.cpus)?;
            run::run(&plan, command, !no_record, &mut place)
        }
        What::Verify { which, duration } => {
            let plan = plan(&read(&place), &which.cpus)?;
            verify::verify(&plan, *duration, &mut place)
        }
    }
}

fn plan(machine: &Machine, cpus: &Cpus) -> Result<Plan, String> {
    Plan::new(machine, cpus).map_err(|error| format!("--cpus {cpus}: {error}"))
}

fn status(place: &Place) -> Result<u8, String> {
    let held = place.store.held().map_err(|error| error.to_string())?;
    if held.is_empty() {
        print("nothing is taken or changed\n");
    }
    for held in held {
        let until = if held.keep { "until it is undone" } else { "while it runs" };
        print(&format!(
            "{}: {}, by {} ({}), {until}\n",
            held.purpose,
            format_counted(held.changes as u64, "setting"),
            held.owner.name,
            held.owner.process
        ));
    }
    Ok(0)
}

/// Prints the settings that were not restored. Returns the exit code.
fn print_undone(undone: &Undone) -> u8 {
    for left in &undone.left {
        message!("left as it is: {}, which was `{}`: {}", left.setting, left.old, left.why);
    }
    if undone.left.iter().any(|left| left.is_open) { FINDING } else { 0 }
}
