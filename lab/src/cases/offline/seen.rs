//! Figures and traces of the program that runs without Linux.

use serde_json::Value;
use xtask_support::Result;
use xtask_support::process::Outcome;

use super::{Case, case, level};
use crate::cases::demand;

/// Precision with which two readings of the counter relate the other CPU's clock to that of Linux,
/// in ns.
const PRECISION_NS: u64 = 2_000;

/// `punctual top` shows the tasks of both programs, and a recording has the jobs of both.
pub(super) fn seen() -> Case {
    let script = "cd /tmp
        run=\"$punctual isolate run --offline --heartbeat 30s --grace 10s --cpus 2 -- $level $level_ui\"
        $punctual trace record -o t.dat -- $run ends >out 2>&1; echo \"recorded $?\"
        $punctual trace report t.dat --csv t.csv >report 2>&1; grep LOST report
        head -n 1 t.csv; grep ',offline,' t.csv | grep ',control,' | head -n 50; echo \"on Linux: $(grep -c ',show,' t.csv)\"
        $run runs >out 2>&1 &
        until grep -q 'ui: 9' out || ! kill -0 $!; do usleep 20000; done
        $punctual top --count 1 --json punctual; $punctual top --count 1 --json level_ui
        kill -INT $!; wait $!; echo \"ended $?\"";
    case("both programs are in `top` and in a trace", script, &level(), judge)
}

fn judge(outcome: &Outcome) -> Result {
    let printed = |line: &str| outcome.stdout.lines().any(|printed| printed == line);
    demand(printed("recorded 0") && printed("ended 0"), "an app or a recording failed")?;
    demand(!outcome.stdout.contains("LOST"), "jobs are not marked")?;
    let mut lines = outcome.stdout.lines().skip_while(|line| !line.starts_with("version,"));
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let jobs: Vec<Vec<&str>> = lines
        .map(|line| line.split(',').collect())
        .filter(|job: &Vec<_>| job.len() == columns.len())
        .collect();
    let field = |job: &[&str], name: &str| {
        let at = columns.iter().position(|column| *column == name)?;
        job.get(at)?.parse::<u64>().ok()
    };
    demand(jobs.len() == 50, "the trace lacks jobs")?;
    let is_right = |pair: &[Vec<&str>]| {
        let [one, next] = pair else { return false };
        let at = |job, name| field(job, name).unwrap_or(0);
        // One per ms that is not an overrun, in order, on their CPU, with consistent times.
        let apart = at(next, "released_min_ns").saturating_sub(at(one, "released_min_ns"));
        at(one, "first_cpu") == 2
            && at(one, "released_min_ns") <= at(one, "start_ns")
            && at(one, "start_ns") < at(one, "end_ns")
            && at(one, "r_max_ns") == at(one, "end_ns") - at(one, "released_min_ns")
            && apart > 0
            && (apart + PRECISION_NS) % 1_000_000 <= 2 * PRECISION_NS
    };
    demand(jobs.windows(2).all(is_right), "jobs in the trace are not as they ran")?;
    let marks =
        outcome.stdout.lines().filter_map(|line| line.strip_prefix("on Linux: ")?.parse::<u64>().ok());
    demand(marks.sum::<u64>() > 0, "the trace lacks jobs of the program on Linux")?;
    let outputs: Vec<Value> = outcome
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect();
    let jobs = |app: usize, name: &str| {
        let task = outputs.get(app)?["tasks"].as_array()?.iter().find(|task| task["name"] == name)?;
        let jobs = task["jobs"].as_u64()?;
        let known = |quantity: &str| task[quantity]["max"].as_u64() >= task[quantity]["p999"].as_u64();
        (known("jitter") && known("response") && task["execution"]["max"].as_u64()? > 0).then_some(jobs)
    };
    // An answer follows 100 jobs of the controller.
    demand(jobs(0, "control") >= Some(900), "`top` lacks the program without Linux")?;
    demand(jobs(1, "show") > Some(0), "`top` lacks the program on Linux")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rejects;

    #[test]
    fn demands_jobs_of_both_programs() {
        let job = |n: u64| format!("5,offline,control,{n}000000,{n}000100,{n}000300,2,300\n");
        let jobs: String = (1..=50).map(job).collect();
        let of_task = |task: &str, jobs: u32| {
            let figures =
                r#""jitter":{"max":2,"p999":1},"response":{"max":2,"p999":1},"execution":{"max":1}"#;
            format!("{{\"tasks\":[{{\"name\":\"{task}\",\"jobs\":{jobs},{figures}}}]}}\n")
        };
        let good = format!(
            "recorded 0\nversion,sort,task_name,released_min_ns,start_ns,end_ns,first_cpu,r_max_ns\n{jobs}on Linux: 7\n{}{}ended 0\nonline 0-2\n",
            of_task("control", 900),
            of_task("show", 1),
        );
        let job = "5,offline,control,9000000,9000100,9000300,2,300";
        rejects(
            judge,
            &good,
            &[
                ("recorded 0", "recorded 1"),
                ("ended 0", "ended 101"),
                ("recorded 0", "recorded 0\nLOST: 7 jobs"),
                (job, "5,offline,control,8995000,9000100,9000300,2,5300"),
                (&format!("{job}\n"), ""),
                ("9000300,2,", "9000300,0,"),
                ("\"jobs\":900", "\"jobs\":0"),
                ("on Linux: 7", "on Linux: 0"),
                ("\"name\":\"show\"", "\"name\":\"control\""),
            ],
        );
    }
}
