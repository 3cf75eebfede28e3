// Dark or light, set before the first drawing: this script is loaded in the head
// and is no module, which would be run too late. Without a choice the page
// follows the system.
(() => {
  const themes = ['auto', 'light', 'dark'];
  const root = document.documentElement;

  const stored = () => {
    try { return localStorage.getItem('rankcache.theme'); } catch { return null; } // storage may be forbidden
  };
  const store = (theme) => {
    try { localStorage.setItem('rankcache.theme', theme); } catch { /* then it lasts as long as the page */ }
  };

  const apply = (theme) => { root.dataset.theme = themes.includes(theme) ? theme : 'auto'; };
  apply(stored());

  addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const label = () => {
      const theme = root.dataset.theme;
      button.querySelector('span').textContent = theme;
      button.setAttribute('aria-label', `Colours: ${theme}. Press to change.`);
    };
    button.addEventListener('click', () => {
      apply(themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length]);
      store(root.dataset.theme);
      label();
    });
    label();
  });
})();
