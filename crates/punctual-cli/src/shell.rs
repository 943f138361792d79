//! `punctual completions` and `punctual man`: the command line, for shells and for `man`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, Args, Command};
use clap_complete::Shell;
use punctual_analysis::schema;
use punctual_files::NewFile;
use punctual_report::escape::Printable;
use punctual_trace::read::Trace;
use serde::Deserialize;

use crate::output::print;
use crate::status::{self, GOOD};
use crate::top::find::Apps;
use crate::top::memory::Memory;

/// Print what a shell needs to complete the command line
///
/// bash, zsh and fish also complete names of tasks: of running apps, and of recordings, models and
/// task sets on the command line.
#[derive(Debug, Args)]
#[command(
    override_usage = "punctual completions <SHELL>",
    after_help = "\
Examples:
  punctual completions bash | sudo tee /etc/bash_completion.d/punctual
  punctual completions zsh > ~/.zfunc/_punctual"
)]
pub(crate) struct Completions {
    #[arg(required_unless_present = "tasks")]
    shell: Option<Shell>,

    /// Print the names of tasks for a command line, for the scripts
    #[arg(long, hide = true, conflicts_with = "shell")]
    tasks: bool,

    /// The words of the command line
    #[arg(last = true, hide = true, requires = "tasks")]
    words: Vec<OsString>,
}

/// Write a manual page for each command
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  punctual man /usr/local/share/man/man1 && man punctual-top")]
pub(crate) struct Man {
    /// An existing directory
    directory: PathBuf,
}

pub(crate) fn completions(arguments: &Completions, command: &mut Command) -> ExitCode {
    let Some(shell) = arguments.shell else {
        task_names(&arguments.words).iter().for_each(|name| print(&format!("{name}\n")));
        return ExitCode::SUCCESS;
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "punctual", &mut script);
    print(&with_task_names(shell, &String::from_utf8_lossy(&script)));
    if shell == Shell::Fish {
        print(&positional_values(command));
    }
    ExitCode::SUCCESS
}

/// Flags whose values are names of tasks.
const TASK_FLAGS: [&str; 2] = ["task", "without"];

/// Makes a script for bash, zsh or fish complete the values of [`TASK_FLAGS`] by asking the
/// command.
fn with_task_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            let flags = TASK_FLAGS.map(|flag| format!("--{flag}")).join("|");
            script.replace("complete -F _punctual ", "complete -F _punctual_or_task ")
                + &format!(
                    "
_punctual_or_task() {{
    case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in
        {flags})
            local IFS=$'\\n'
            COMPREPLY=($(compgen -W \"$(\"${{COMP_WORDS[0]}}\" completions --tasks -- \"${{COMP_WORDS[@]}}\" 2>/dev/null)\" \\
                -- \"${{COMP_WORDS[COMP_CWORD]}}\"))
            ;;
        *) _punctual \"$@\" ;;
    esac
}}
"
                )
        }
        Shell::Zsh => {
            let of_flag = |line: &str| {
                let is_task = TASK_FLAGS.iter().any(|flag| line.contains(&format!("--{flag}=[")));
                if is_task { line.replace(":_default'", ":_punctual_tasks'") } else { line.to_owned() }
            };
            let (first, rest) = script.split_once('\n').unwrap_or((script, ""));
            let rest: Vec<String> = rest.split('\n').map(of_flag).collect();
            // The first line has to be `#compdef`.
            format!(
                "{first}
_punctual_tasks() {{
    local -a names
    names=(${{(f)\"$(\"${{words[1]}}\" completions --tasks -- \"${{words[@]}}\" 2>/dev/null)\"}})
    compadd -a names
}}
{}",
                rest.join("\n")
            )
        }
        Shell::Fish => {
            let of_flag = |line: &str| {
                let is_task = TASK_FLAGS.iter().any(|flag| line.contains(&format!(" -l {flag} ")));
                let Some(line) = line.strip_suffix(" -r").filter(|_| is_task) else { return line.to_owned() };
                let ask =
                    "set -l words (commandline -opc); $words[1] completions --tasks -- $words 2>/dev/null";
                format!("{line} -x -a '({ask})'")
            };
            script.split('\n').map(of_flag).collect::<Vec<_>>().join("\n")
        }
        _ => script.to_owned(),
    }
}

/// Returns what a script for fish lacks: the possible values of positional arguments.
fn positional_values(command: &Command) -> String {
    let program = command.get_name();
    let line = |command: &Command| {
        let values = command.get_positionals().flat_map(Arg::get_possible_values);
        let values: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        (!values.is_empty()).then(|| {
            let (name, values) = (command.get_name(), values.join(" "));
            format!("complete -c {program} -n '__fish_punctual_using_subcommand {name}' -f -a '{values}'\n")
        })
    };
    command.get_subcommands().filter_map(line).collect()
}

/// Maximum number of events of a recording that are searched for names of tasks.
const MAX_EVENTS: usize = 2_000_000;

/// Returns the names of the tasks of running apps, and of the files among the words of a command
/// line.
fn task_names(words: &[OsString]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // A FIFO or a device would make the shell wait.
    let can_be_read = |word: &&Path| word.is_file() || word.is_dir();
    for word in words.iter().skip(1).map(Path::new).filter(can_be_read) {
        names.extend(tasks_of_file(word));
    }
    for found in &Apps::running().found {
        let memory = Memory::open(found);
        names.extend(memory.into_iter().flat_map(|memory| memory.about.tasks).map(|task| task.name));
    }
    // A shell would split names at spaces, and a terminal would obey control characters.
    names.retain(|name| !name.is_empty() && !name.contains(char::is_whitespace));
    names.into_iter().map(|name| Printable(&name).to_string()).collect()
}

/// Returns the names of the threads and tasks of a recording, or of the tasks of a model or task
/// set.
fn tasks_of_file(file: &Path) -> Vec<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    #[derive(Deserialize)]
    struct Model {
        tasks: Vec<Named>,
    }
    if let Ok(mut events) = Trace::open(file).and_then(|trace| trace.events()) {
        let mut names: Vec<String> =
            events.threads().iter().map(|(_, name)| name.text().to_string()).collect();
        let mut read = 0;
        while read < MAX_EVENTS
            && let Some(run) = events.next_run()
        {
            read += run.map_or(1, |run| run.len().max(1));
        }
        names.extend(events.tasks().iter().map(|(_, name)| name.to_owned()));
        return names;
    }
    let text = punctual_files::read_text(file).unwrap_or_default();
    if let Ok(model) = serde_json::from_str::<Model>(&text) {
        return model.tasks.into_iter().map(|task| task.name).collect();
    }
    let set = schema::read("", &text);
    set.into_iter().flat_map(|system| system.tasks).map(|task| task.name).collect()
}

pub(crate) fn man(arguments: &Man, command: Command) -> Result<u8, String> {
    let directory: &Path = &arguments.directory;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_pages(&command, directory).map(|()| GOOD).map_err(|error| {
        format!("{}: {error}; give an existing directory that can be written", directory.display())
    })
}

/// Writes the pages of a command and its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, directory)?;
    }
    let (name, page) = page(command)?;
    let mut file = NewFile::create(&directory.join(name))?;
    file.write_all(page.as_bytes())?;
    // Other users read the pages.
    file.file().set_permissions(Permissions::from_mode(0o644))?;
    file.commit()
}

/// Returns the file name and the text of a page.
fn page(command: &Command) -> io::Result<(String, String)> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some((_, examples)) = examples.split_once(":\n").filter(|_| examples.starts_with(EXAMPLES)) {
        page += &format!(".SH EXAMPLES\n.nf\n{}.fi\n", verbatim(examples));
    }
    page += ".SH EXIT STATUS\n";
    for (status, meaning) in status::TABLE {
        page += &format!(".TP\n{status}\n{}", verbatim(meaning));
    }
    Ok((man.get_filename(), page))
}

/// First word of an explanation that consists of examples.
const EXAMPLES: &str = "Example";

/// Escapes lines, so that the page shows them as they are.
fn verbatim(text: &str) -> String {
    let escape = |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-"));
    text.lines().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Punctual;

    /// Returns every command, with its parents.
    fn commands() -> Vec<(String, Command)> {
        fn add(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
            let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
            for subcommand in command.get_subcommands() {
                add(subcommand, &path, all);
            }
            all.push((path, command.clone()));
        }
        let mut command = Punctual::command().disable_help_subcommand(true);
        command.build();
        let mut all = Vec::new();
        add(&command, "", &mut all);
        all
    }

    /// The number that the manual documents, without `--help` and `--version`.
    #[test]
    fn offers_at_most_110_flags() {
        let of = |(path, command): (String, Command)| -> Vec<String> {
            let visible = command.get_arguments().filter(|flag| !flag.is_hide_set());
            let flags = visible.filter_map(|flag| flag.get_long().map(str::to_owned));
            let own = flags.filter(|flag| flag != "help" && flag != "version");
            own.map(|flag| format!("{path} --{flag}")).collect()
        };
        let flags: Vec<String> = commands().into_iter().flat_map(of).collect();
        assert!(flags.len() <= 110, "{} flags: {flags:#?}", flags.len());
    }

    #[test]
    fn scripts_complete_every_flag_with_names_of_tasks() {
        let mut flags = BTreeSet::new();
        for (_, command) in commands() {
            let is_name = |value: &str| ["NAME", "NAME|TID", "TASK"].contains(&value);
            let named = command
                .get_arguments()
                .filter(|flag| flag.get_value_names().into_iter().flatten().any(|value| is_name(value)));
            flags.extend(named.filter_map(|flag| flag.get_long().map(str::to_owned)));
        }
        // Clocks and templates have names as well.
        assert!(flags.remove("clock") && flags.remove("template"));
        assert_eq!(flags.into_iter().collect::<Vec<_>>(), TASK_FLAGS);
        for (shell, asks) in [(Shell::Bash, 1), (Shell::Zsh, 5), (Shell::Fish, 4)] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Punctual::command(), "punctual", &mut script);
            let script = with_task_names(shell, &String::from_utf8(script).unwrap());
            let asking = ["completions --tasks", ":_punctual_tasks'"];
            let found = asking.map(|asks| script.matches(asks).count()).iter().sum::<usize>();
            assert_eq!(found, asks, "{shell}: {script}");
        }
    }

    #[test]
    fn fish_completes_suites() {
        let lines = positional_values(&Punctual::command());
        assert!(lines.contains("using_subcommand bench' -f -a 'periods rtos "), "{lines}");
    }

    #[test]
    fn help_fits_80_columns() {
        for (path, mut command) in commands() {
            // Unbroken, so that examples can be pasted.
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for help in [command.render_help().to_string(), command.render_long_help().to_string(), examples]
            {
                for line in help.lines() {
                    assert!(line.chars().count() <= 80, "{path}: {} columns: {line}", line.chars().count());
                }
            }
        }
    }

    #[test]
    fn pages_show_examples_verbatim() {
        let mut found = 0;
        for (path, command) in commands() {
            let (_, page) = page(&command).unwrap();
            let shown = page.replace("\\-", "-").replace("\\e", "\\");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for example in help.lines().skip(1).filter(|_| help.starts_with(EXAMPLES)) {
                assert!(shown.contains(&format!("\n\\&{example}\n")), "{path}: {example}\n{page}");
                found += 1;
            }
        }
        assert!(found > 60, "{found} examples");
    }
}
