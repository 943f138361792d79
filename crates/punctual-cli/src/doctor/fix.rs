//! Makes reversible changes, and undoes them.

use std::io::{self, BufRead};

use punctual_isolate::change::Settings;
use punctual_isolate::doctor::{Finding, Fix, Report};
use punctual_report::format::format_counted;

use super::Place;
use crate::output::{message, print};
use crate::status::FINDING;

/// Name and description of the journal of all fixes.
const JOURNAL: &str = "doctor";
const PURPOSE: &str = "the fixes of `punctual doctor --fix`";

/// Makes the changes that the user agrees to. Returns the exit code, or the reason why nothing was
/// changed.
pub(super) fn fix(report: &Report, place: &mut Place) -> Result<u8, String> {
    let fixable: Vec<_> = report
        .findings
        .iter()
        .filter_map(|finding| Some((finding, finding.fixes.iter().find(|fix| !fix.changes.is_empty())?)))
        .collect();
    if fixable.is_empty() {
        print("nothing that was found can be fixed and undone\n");
        return Ok(if report.is_fit() { 0 } else { FINDING });
    }
    let is_agreed = |(finding, fix): &(&Finding, &Fix)| ask(&finding.found, &fix.command);
    let agreed: Vec<_> = fixable.into_iter().filter(is_agreed).collect();
    if agreed.is_empty() {
        print("nothing was changed\n");
        return Ok(FINDING);
    }
    // Each run of --fix has a separate journal, which the next does not disturb.
    let number = (1..).find(|number| !is_taken(place, *number)).unwrap_or(1);
    let name = format!("{JOURNAL}-{number}");
    let mut journal =
        place.store.begin(&name, PURPOSE, true, &mut place.settings).map_err(|error| error.to_string())?;
    let (mut changed, mut refused) = (0, 0);
    for (finding, fix) in agreed {
        let mut refusals = Vec::new();
        for change in &fix.changes {
            let old = place.settings.get(&change.setting).unwrap_or_default();
            match journal.apply(change, &mut place.settings) {
                Ok(()) => {
                    changed += 1;
                    print(&format!("changed: {}: `{old}` to `{}`\n", change.setting, change.new));
                }
                Err(error) => {
                    refused += 1;
                    print(&format!("refused: {error}\n"));
                    refusals.push(change);
                }
            }
        }
        match refusals.is_empty() {
            true => print(&format!("fixed: {}\n", finding.found)),
            false => print(&unfixed(finding, refusals.len(), fix.changes.len())),
        }
    }
    print(&format!(
        "{} changed, {refused} refused; to undo it: punctual doctor --undo, or a reboot\n",
        format_counted(changed, "setting")
    ));
    Ok(if refused > 0 { FINDING } else { 0 })
}

/// Describes a finding whose remedy the kernel refused, with the remedies that are left.
fn unfixed(finding: &Finding, refused: usize, of: usize) -> String {
    let left = finding.fixes.iter().filter(|fix| fix.changes.is_empty());
    let left: Vec<&str> = left.map(|fix| fix.command.as_str()).collect();
    let remedy = match left.is_empty() {
        true => "no other remedy is known".to_owned(),
        false => left.join(", or "),
    };
    format!("not fixed: {}: {refused} of {of} changes were refused; {remedy}\n", finding.found)
}

fn is_taken(place: &Place, number: u32) -> bool {
    let held = place.store.held().unwrap_or_default();
    held.iter().any(|held| held.name == format!("{JOURNAL}-{number}"))
}

fn ask(found: &str, command: &str) -> bool {
    print(&format!("\n{found}\n  {command}\n  run this? [y/N] "));
    let mut answer = String::new();
    // A missing answer is a refusal.
    let _ = io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Undoes all fixes, the last first. Returns the exit code, or the reason why nothing was changed.
pub(super) fn undo(place: &mut Place) -> Result<u8, String> {
    let held = place.store.held().map_err(|error| error.to_string())?;
    let number = |name: &str| name.strip_prefix(JOURNAL)?.strip_prefix('-')?.parse::<u32>().ok();
    let mut fixes: Vec<_> = held.iter().filter(|held| number(&held.name).is_some()).collect();
    fixes.sort_by_key(|held| std::cmp::Reverse(number(&held.name)));
    if fixes.is_empty() {
        print("there is nothing to undo\n");
        return Ok(0);
    }
    let (mut restored, mut code) = (0, 0);
    for held in fixes {
        let undone = place.store.undo(&held.name, &mut place.settings).map_err(|error| error.to_string())?;
        let undone = undone.unwrap_or_default();
        restored += undone.restored;
        for left in undone.left {
            message!("left as it is: {}, which was `{}`: {}", left.setting, left.old, left.why);
            if left.is_open {
                code = FINDING;
            }
        }
    }
    print(&format!("{} restored\n", format_counted(restored as u64, "setting")));
    Ok(code)
}

#[cfg(test)]
mod tests {
    use punctual_isolate::doctor::{Scene, examine};
    use punctual_isolate::facts::Machine;
    use punctual_isolate::tree::Tree;

    use super::*;

    #[test]
    fn refused_finding_lists_the_remedies_that_are_left() {
        let tree = Tree::parse("")
            .with("/sys/devices/system/cpu/online", "0-1")
            .with("/proc/interrupts", "CPU0 CPU1\n24: 5 1234 PCI-MSI nvme0q1\n");
        let machine = Machine::read(tree.with("/proc/irq/24/effective_affinity_list", "1"));
        let report = examine(&Scene::new(&machine));
        let finding = report.findings.iter().find(|finding| finding.check == "interrupts").unwrap();
        let text = unfixed(finding, 1, 1);
        assert!(text.starts_with("not fixed: CPU 1 handles interrupts: 24 "), "{text}");
        assert!(text.contains("1 of 1 changes were refused; boot with irqaffinity=0"), "{text}");
    }
}
