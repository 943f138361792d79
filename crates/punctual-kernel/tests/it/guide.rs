// The hidden beginning of the examples in the documentation of types.

pub use punctual_kernel::sim::{self, Sim};

pub type Kernel = punctual_kernel::Kernel<Sim>;
pub type Thread = punctual_kernel::Thread<Sim>;
pub type Mutex<T> = punctual_kernel::Mutex<Sim, T>;
pub type OrderedMutex<T> = punctual_kernel::OrderedMutex<Sim, T>;
pub type Semaphore = punctual_kernel::Semaphore<Sim>;
pub type Stack = punctual_kernel::Stack<Sim, 65536>;
