'use strict';

// The scrubber over the worst jobs of a task: slider, buttons, and arrow keys.
const scrubbers = new Map();
for (const figure of document.querySelectorAll('.worst')) {
  const jobs = [...figure.querySelectorAll('.job')];
  const bar = figure.querySelector('.scrub');
  if (!bar) continue;
  const [worse, better] = bar.querySelectorAll('button');
  const slider = bar.querySelector('input');
  const said = bar.querySelector('output');
  const show = (wanted) => {
    const chosen = Math.min(Math.max(wanted, 0), jobs.length - 1);
    jobs.forEach((job, index) => { job.hidden = index !== chosen; });
    slider.value = chosen + 1;
    said.textContent = jobs[chosen].querySelector('.which b').textContent;
    worse.disabled = chosen === 0;
    better.disabled = chosen === jobs.length - 1;
  };
  const move = (by) => show(Number(slider.value) - 1 + by);
  slider.addEventListener('input', () => show(Number(slider.value) - 1));
  worse.addEventListener('click', () => move(-1));
  better.addEventListener('click', () => move(1));
  figure.tabIndex = 0;
  figure.addEventListener('keydown', (event) => {
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'ArrowLeft') move(-1);
    else if (event.key === 'ArrowRight') move(1);
    else return;
    event.preventDefault();
  });
  bar.hidden = false;
  show(0);
  jobs.forEach((job, index) => scrubbers.set(job.id, () => show(index)));
}

// A link to one job, such as #t0-j3, shows it.
const follow = () => {
  const id = location.hash.slice(1);
  const reveal = scrubbers.get(id);
  if (!reveal) return;
  reveal();
  document.getElementById(id).closest('.worst').scrollIntoView();
};
addEventListener('hashchange', follow);
follow();
