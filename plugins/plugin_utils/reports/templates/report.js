(function () {
  'use strict';
  // The page is complete without this: it only hides what was not asked for.
  var tools = document.getElementById('tools');
  var search = document.getElementById('search');
  var shown = document.getElementById('shown');
  var picked = document.getElementById('cluster');
  var filters = Array.prototype.slice.call(document.querySelectorAll('.filter'));
  var folds = Array.prototype.slice.call(document.querySelectorAll('details.fold'));
  var counts = Array.prototype.slice.call(document.querySelectorAll('.count'));
  var items = null;
  var waiting = false;
  var opened = [];

  function all() {
    if (items) { return items; }
    items = Array.prototype.map.call(document.querySelectorAll('.item'), function (element) {
      var cluster = element.closest('.cluster');
      return {
        element: element, text: null, states: ' ' + element.dataset.s + ' ', chunk: element.closest('.chunk'), list: element.closest('.list'),
        cluster: cluster ? cluster.dataset.cluster : null, visible: true
      };
    });
    return items;
  }

  function textOf(item) {
    if (item.text === null) { item.text = item.element.textContent.replace(/\s+/g, ' ').toLowerCase(); }
    return item.text;
  }

  function matches(item, words, states, cluster) {
    if (cluster !== '' && item.cluster !== null && item.cluster !== cluster) { return false; }
    if (states.length && !states.some(function (state) { return item.states.indexOf(' ' + state + ' ') >= 0; })) { return false; }
    return words.every(function (word) { return textOf(item).indexOf(word) >= 0; });
  }

  function apply() {
    waiting = false;
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    var states = filters.filter(function (one) { return one.getAttribute('aria-pressed') === 'true'; })
      .map(function (one) { return one.dataset.s; });
    var cluster = picked ? picked.value : '';
    var narrowed = words.length > 0 || states.length > 0 || cluster !== '';
    var chunks = new Map();
    var lists = new Map();
    all().forEach(function (item) {
      var good = !narrowed || matches(item, words, states, cluster);
      if (good !== item.visible) { item.visible = good; item.element.hidden = !good; }
      if (item.chunk) { chunks.set(item.chunk, chunks.get(item.chunk) || good); }
      if (item.list) { lists.set(item.list, (lists.get(item.list) || 0) + (good ? 1 : 0)); }
    });
    chunks.forEach(function (some, chunk) { if (chunk.hidden === some) { chunk.hidden = !some; } });
    document.querySelectorAll('.cluster').forEach(function (section) {
      section.hidden = cluster !== '' && section.dataset.cluster !== cluster;
    });
    var total = 0;
    counts.forEach(function (count) {
      var some = lists.get(count.closest('.list')) || 0;
      total += some;
      count.textContent = narrowed ? some + ' of ' + count.dataset.total : count.dataset.total;
    });
    unfold(narrowed);
    shown.textContent = narrowed ? total + (total === 1 ? ' entry' : ' entries') : '';
  }

  // Hosts without a fault are folded away; a search that finds one shows it.
  function unfold(narrowed) {
    folds.forEach(function (fold) {
      var some = narrowed && fold.querySelector('.chunk:not([hidden])') !== null;
      if (some && !fold.open) { fold.open = true; opened.push(fold); }
      fold.hidden = narrowed && !some;
    });
    if (!narrowed) {
      opened.forEach(function (fold) { fold.open = false; });
      opened = [];
    }
  }

  function soon() {
    if (!waiting) { waiting = true; window.requestAnimationFrame(apply); }
  }

  function clear() {
    search.value = '';
    filters.forEach(function (one) { one.setAttribute('aria-pressed', 'false'); });
    if (picked) { picked.value = ''; }
    soon();
  }

  function copy(button) {
    var code = button.parentNode.querySelector('code');
    function said(word) {
      button.textContent = word;
      window.setTimeout(function () { button.textContent = 'Copy'; }, 1500);
    }
    function select() {
      window.getSelection().selectAllChildren(code);
      said('Selected');
    }
    if (navigator.clipboard) {
      navigator.clipboard.writeText(code.textContent).then(function () { said('Copied'); }, select);
    } else {
      select();
    }
  }

  tools.hidden = false;
  document.documentElement.classList.add('js');
  tools.addEventListener('submit', function (event) { event.preventDefault(); });
  search.addEventListener('input', soon);
  if (picked) { picked.addEventListener('change', soon); }
  document.addEventListener('click', function (event) {
    var button = event.target.closest('button');
    if (!button) { return; }
    if (button.classList.contains('copy')) { copy(button); }
    if (button.classList.contains('filter')) {
      button.setAttribute('aria-pressed', button.getAttribute('aria-pressed') === 'true' ? 'false' : 'true');
      soon();
    }
  });
  document.addEventListener('keydown', function (event) {
    var typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === '/' && !typing && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === 'Escape') {
      clear();
    }
  });
  // What can be searched is read while the page is idle.
  function prepare(from) {
    var list = all();
    var end = Math.min(from + 500, list.length);
    for (var index = from; index < end; index += 1) { textOf(list[index]); }
    if (end < list.length) { later(end); }
  }
  function later(from) {
    (window.requestIdleCallback || window.setTimeout)(function () { prepare(from); });
  }
  window.addEventListener('load', function () { later(0); });
  soon();
}());
