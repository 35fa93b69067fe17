const eventSource = new EventSource('/api/agent/chat/react/stream');

eventSource.addEventListener('INTERACTION', (event) => {
  const interactionRequest = JSON.parse(event.data).data;
  
  // 渲染交互 UI
  renderInteractionUI(interactionRequest);
});

async function handleUserResponse(requestId, selectedOptionId, feedback, data) {
  const response = await fetch('/api/agent/chat/react/interaction_response', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      sessionId: currentSessionId,
      requestId: requestId,
      selectedOptionId: selectedOptionId,
      feedback: feedback,
      data: data
    })
  });
  
  const result = await response.json();
  console.log(result.message);
}

function renderInteractionUI(request) {
  const container = document.getElementById('interaction-container');
  
  // 标题和消息
  container.innerHTML = `
    <h3>${request.title}</h3>
    <p>${request.message}</p>
    ${request.details ? `<p class="details">${request.details}</p>` : ''}
  `;
  
  // 渲染选项
  request.options.forEach(option => {
    const button = document.createElement('button');
    button.textContent = option.label;
    button.title = option.description;
    button.className = option.isDangerous ? 'btn-danger' : 'btn-primary';
    
    button.onclick = () => {
      if (option.requiresInput) {
        const feedback = prompt(option.inputPrompt);
        handleUserResponse(request.requestId, option.optionId, feedback, {});
      } else {
        handleUserResponse(request.requestId, option.optionId, null, {});
      }
    };
    
    container.appendChild(button);
  });
}
