//! The typed model of an application: the user's declarations, with the span of every identifier.
//!
//! The parser builds it, the analysis and the checks read it, the generator turns it into code. A
//! model that has passed the checks upholds all the rules of the language; before that it may not,
//! so only the generator may rely, for example, on a used resource being declared.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Expr, ForeignItemFn, Ident, Item, ItemFn, ItemStruct, LitBool, LitStr, Pat, Path, ReturnType,
    Signature, Token, Type, Visibility,
};

/// The level of `idle`, below that of every task.
pub(crate) const IDLE_LEVEL: u8 = 0;

/// A whole `#[punctual::app]` module.
pub(crate) struct App {
    pub(crate) args: AppArgs,
    pub(crate) module: Module,
    pub(crate) shared: Shared,
    pub(crate) local: Local,
    pub(crate) init: Init,
    pub(crate) idle: Option<Idle>,
    pub(crate) shutdown: Option<Shutdown>,
    /// The tasks, in order of declaration.
    pub(crate) tasks: Vec<Task>,
    /// Items removed by conditions.
    pub(crate) absent: Absent,
    /// All other items, unchanged and in order. They are emitted before the handlers, which keeps a
    /// `macro_rules!` among them in scope of the functions that use it.
    pub(crate) items: Vec<Item>,
}

/// Items removed by a `#[cfg]`, as far as rules consider them.
pub(crate) struct Absent {
    /// The names of resources.
    pub(crate) fields: Vec<Ident>,
    pub(crate) tasks: Vec<Task>,
    /// `idle` and `shutdown`.
    pub(crate) handlers: Vec<Handler>,
}

/// The arguments of `#[punctual::app(..)]`.
#[derive(Default)]
pub(crate) struct AppArgs {
    pub(crate) cpu: Option<Expr>,
    /// `executor = "global"`, with the location of the value.
    pub(crate) global: Option<LitStr>,
    /// The partitions, in order of declaration; empty if there is a single unnamed one.
    pub(crate) partitions: Vec<PartitionArgs>,
    pub(crate) priority_base: Option<u8>,
    /// The stack of each thread.
    pub(crate) stack: Option<Size>,
    /// The bound on the wake-up latency of CPUs, if any.
    pub(crate) wake_latency: Option<Duration>,
    pub(crate) strict: bool,
    /// True if jobs are marked in the kernel's trace.
    pub(crate) trace: bool,
    /// True if locks and spawns are measured while the app is profiled.
    pub(crate) profile: bool,
    /// Destination of the report.
    pub(crate) report: Option<LitStr>,
    /// `monitor = <bool>`; absent means true.
    pub(crate) monitor: Option<LitBool>,
    /// `crate = <path>`: the path of the framework, if not `::punctual`.
    pub(crate) root: Option<Path>,
    /// `main = <bool>`; absent means "unless `init` takes arguments". See [`App::generates_main`].
    pub(crate) main: Option<LitBool>,
}

/// An entry of `partitions = [..]`.
pub(crate) struct PartitionArgs {
    pub(crate) ident: Ident,
    pub(crate) cpu: Option<Expr>,
    /// The stack of each thread.
    pub(crate) stack: Option<Size>,
    /// One thread that never sleeps.
    pub(crate) poll: bool,
}

/// The module of the application, without its contents.
pub(crate) struct Module {
    /// Outer attributes, then inner ones (distinguished by [`syn::AttrStyle`]).
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
}

/// The `#[shared]` struct.
pub(crate) struct Shared {
    /// The struct as written, without the framework's attributes.
    pub(crate) item: ItemStruct,
    pub(crate) resources: Vec<Resource>,
}

/// A field of the `#[shared]` struct.
pub(crate) struct Resource {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) lock_free: bool,
}

/// The `#[local]` struct.
pub(crate) struct Local {
    /// The struct as written, without the framework's attributes.
    pub(crate) item: ItemStruct,
    pub(crate) fields: Vec<LocalField>,
}

/// A field of the `#[local]` struct.
pub(crate) struct LocalField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
}

/// `#[init]`. Its `handler.args` are the arguments of the application's `run`.
pub(crate) struct Init {
    pub(crate) handler: Handler,
}

/// `#[idle]`.
pub(crate) struct Idle {
    pub(crate) handler: Handler,
}

/// `#[shutdown]`.
pub(crate) struct Shutdown {
    pub(crate) handler: Handler,
}

/// `#[task(..)]`. Its `handler.args` are the message.
pub(crate) struct Task {
    pub(crate) handler: Handler,
    pub(crate) kind: TaskKind,
    /// The level the task runs at, 1 to 28.
    pub(crate) priority: u8,
    /// Numbers in the attribute other than literals, with the macro's value for each.
    pub(crate) computed: Vec<(Expr, i128)>,
    /// `core = <partition>`, without `r#`.
    pub(crate) core: Option<Ident>,
    /// Maximum number of waiting messages or queued releases.
    pub(crate) capacity: u16,
    /// The `capacity` key, if it was given.
    pub(crate) capacity_key: Option<Ident>,
    pub(crate) deadline: Option<Duration>,
    /// Minimum inter-arrival time, for a message or a bound task.
    pub(crate) interval: Option<Interval>,
    /// The maximum CPU time of a job, and the reaction of a supervisor to a job that exceeds it.
    pub(crate) budget: Option<Budget>,
    /// The execution time to charge under virtual time.
    pub(crate) execution: Option<Duration>,
    /// Maximum number of times, and of descriptors, that an async task may wait for at once.
    pub(crate) waits: u16,
    /// The `waits` key, if it was given.
    pub(crate) waits_key: Option<Ident>,
    /// The `local_task` key, for a local task: spawned only by tasks of its level, on their thread.
    pub(crate) local_task: Option<Ident>,
}

/// Kind of a task's releases.
pub(crate) enum TaskKind {
    /// A spawn.
    Message,
    /// A spawn; an `async fn`, polled when it is woken.
    Async,
    /// The clock.
    Periodic { period: Duration, offset: Option<Duration>, clock: Option<Path>, on_overrun: OnOverrun },
    /// An event source: the `Local` field of this name, which is also among the task's own locals.
    Bound { source: Ident, on_idle: OnIdle },
}

/// Policy for a release while the previous job is unfinished, as the runtime's type of this name.
#[derive(Clone, Debug)]
pub(crate) enum OnOverrun {
    Skip,
    Queue,
    Stop,
    Task(Ident),
}

impl OnOverrun {
    /// Policies that are not tasks, by the names in the attribute.
    pub(crate) const NAMED: [(&'static str, Self); 3] =
        [("skip", Self::Skip), ("queue", Self::Queue), ("stop", Self::Stop)];

    /// Returns `true` if releases may wait for unfinished jobs.
    pub(crate) fn queues(&self) -> bool {
        match self {
            Self::Queue => true,
            Self::Skip | Self::Stop | Self::Task(_) => false,
        }
    }
}

/// The minimum inter-arrival time of a task.
pub(crate) struct Interval {
    pub(crate) length: Duration,
    /// The largest number of releases in any window of this length.
    pub(crate) burst: u16,
    pub(crate) on_early: OnEarly,
}

/// The maximum CPU time of a task's jobs.
pub(crate) struct Budget {
    pub(crate) length: Duration,
    pub(crate) on_budget: OnBudget,
    /// The `budget` key.
    pub(crate) key: Ident,
}

/// Reaction of a supervisor to a job that exceeds its budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnBudget {
    Report,
    Stop,
    Kill,
}

/// Policy for an early release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnEarly {
    /// It is counted.
    Count,
    /// It waits.
    Delay,
    /// It is rejected.
    Reject,
}

/// Policy for an idle event source that is ready again after a job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnIdle {
    /// Another job each time.
    Every,
    /// No job while it is idle.
    Once,
    /// The end of the app.
    Stop,
}

/// A duration.
pub(crate) struct Duration {
    /// Its value, if written as `<literal>.<unit>()`. Otherwise `source` is a constant expression
    /// of type `punctual::Duration`.
    pub(crate) nanos: Option<u64>,
    pub(crate) source: Box<Expr>,
}

/// A number of bytes.
#[derive(Clone)]
pub(crate) struct Size {
    /// Its value, if written as `<literal>.<unit>()`. Otherwise `source` is a constant expression
    /// of type `usize`.
    pub(crate) bytes: Option<usize>,
    pub(crate) source: Box<Expr>,
}

/// The common part of `init`, `idle`, `shutdown` and tasks.
pub(crate) struct Handler {
    pub(crate) ident: Ident,
    pub(crate) role: Role,
    /// The first parameter; `None` only before the checks.
    pub(crate) context: Option<Context>,
    /// The parameters after the context.
    pub(crate) args: Vec<Arg>,
    pub(crate) shared: Vec<SharedUse>,
    pub(crate) locals: Vec<LocalUse>,
    pub(crate) item: HandlerItem,
}

/// The role of a [`Handler`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Init,
    Idle,
    Shutdown,
    Task,
}

/// The source of a [`Handler`], with the framework's attributes removed and all others, `#[cfg]`
/// included, in place.
pub(crate) enum HandlerItem {
    Defined(ItemFn),
    /// Declared in an `extern "Rust"` block: a function of that name is in scope in the module.
    Extern(ForeignItemFn),
}

/// The first parameter of a handler.
pub(crate) struct Context {
    pub(crate) ty: Type,
}

/// A parameter after the context.
pub(crate) struct Arg {
    /// The user's name, or a generated one if the pattern is not a plain name.
    pub(crate) ident: Ident,
    pub(crate) pat: Pat,
    pub(crate) ty: Type,
}

/// An entry of a `shared = [..]` list.
pub(crate) struct SharedUse {
    pub(crate) ident: Ident,
    pub(crate) access: Access,
}

/// Way in which a handler accesses a shared resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// `&x`
    Reference(Token![&]),
    /// `x`
    Lock,
}

/// An entry of a `local = [..]` list.
pub(crate) struct LocalUse {
    pub(crate) ident: Ident,
    pub(crate) origin: LocalOrigin,
}

/// Origin of a local's initial value.
pub(crate) enum LocalOrigin {
    /// The `#[local]` struct.
    Field,
    /// The list itself: `name: ty = expr`.
    Declared { ty: Box<Type>, expr: Box<Expr> },
}

impl App {
    /// Returns whether to generate `fn main`: not if `init` has arguments that no `main` could
    /// supply.
    pub(crate) fn generates_main(&self) -> bool {
        self.args.main.as_ref().is_none_or(LitBool::value) && self.init.handler.args.is_empty()
    }

    pub(crate) fn resource(&self, name: &Ident) -> Option<&Resource> {
        self.shared.resources.iter().find(|resource| resource.ident == *name)
    }

    pub(crate) fn local_field(&self, name: &Ident) -> Option<&LocalField> {
        self.local.fields.iter().find(|field| field.ident == *name)
    }

    pub(crate) fn task_named(&self, name: &Ident) -> Option<&Task> {
        self.tasks.iter().find(|task| task.handler.ident == *name)
    }

    /// Returns the task of a handler of this app, if it is one.
    pub(crate) fn task(&self, handler: &Handler) -> Option<&Task> {
        self.tasks.iter().find(|task| std::ptr::eq(&task.handler, handler))
    }

    /// Returns the handlers that run concurrently, each with its level: `idle` and the tasks.
    pub(crate) fn concurrent(&self) -> impl Iterator<Item = (u8, &Handler)> {
        let idle = self.idle.iter().map(|idle| (IDLE_LEVEL, &idle.handler));
        idle.chain(self.tasks.iter().map(|task| (task.priority, &task.handler)))
    }

    /// Returns every handler of the application.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = &Handler> {
        let ends = [Some(&self.init.handler), self.shutdown.as_ref().map(|shutdown| &shutdown.handler)];
        ends.into_iter().flatten().chain(self.concurrent().map(|(_, handler)| handler))
    }
}

impl AppArgs {
    pub(crate) fn monitor(&self) -> bool {
        self.monitor.as_ref().is_none_or(LitBool::value)
    }
}

impl HandlerItem {
    pub(crate) fn attrs(&self) -> &[Attribute] {
        match self {
            HandlerItem::Defined(item) => &item.attrs,
            HandlerItem::Extern(item) => &item.attrs,
        }
    }

    pub(crate) fn sig(&self) -> &Signature {
        match self {
            HandlerItem::Defined(item) => &item.sig,
            HandlerItem::Extern(item) => &item.sig,
        }
    }
}

impl Task {
    pub(crate) fn is_async(&self) -> bool {
        matches!(self.kind, TaskKind::Async)
    }

    /// Returns whether it is async and never completes.
    pub(crate) fn is_endless(&self) -> bool {
        let never = |ty: &Type| matches!(ty, Type::Never(_));
        self.is_async() && matches!(&self.handler.sig().output, ReturnType::Type(_, ty) if never(ty))
    }

    /// Returns whether it can be spawned for a time.
    pub(crate) fn is_timed(&self) -> bool {
        let on_early = self.interval.as_ref().map_or(OnEarly::Count, |interval| interval.on_early);
        matches!(self.kind, TaskKind::Message) && on_early == OnEarly::Count
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local_task.is_some()
    }

    pub(crate) fn is_bound(&self) -> bool {
        matches!(self.kind, TaskKind::Bound { .. })
    }
}

impl Handler {
    pub(crate) fn sig(&self) -> &Signature {
        self.item.sig()
    }

    /// Returns the handler's locals that come from the `#[local]` struct.
    pub(crate) fn local_fields(&self) -> impl Iterator<Item = &LocalUse> {
        self.locals.iter().filter(|local| local.is_field())
    }
}

impl LocalUse {
    pub(crate) fn is_field(&self) -> bool {
        matches!(self.origin, LocalOrigin::Field)
    }
}

impl Access {
    pub(crate) fn is_reference(self) -> bool {
        matches!(self, Access::Reference(_))
    }
}

impl Role {
    /// Returns the name of the attribute that marks a function of this role.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Role::Init => "init",
            Role::Idle => "idle",
            Role::Shutdown => "shutdown",
            Role::Task => "task",
        }
    }
}

/// The use as written by the user, so that errors point at the `&` as well as the name.
impl ToTokens for SharedUse {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        if let Access::Reference(and) = self.access {
            and.to_tokens(tokens);
        }
        self.ident.to_tokens(tokens);
    }
}
